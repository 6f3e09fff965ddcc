"""What comes with the package, and what was measured of it and here: tables to print or to analyse.

models(): a line a shipped model          rows(run="exp1", K=6): measurements, one flat dict each"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from composcope.errors import InputError
from composcope.results import Row, gather, only, where

SHIPPED = Path(__file__).parents[1] / "models"
HERE = Path("results")  # where commands put their rows
Folders = Sequence[str | Path]


def rows(folders: Folders = (SHIPPED, HERE), **coordinates: Any) -> list[dict[str, Any]]:
    """Measurements as flat dicts: pandas.DataFrame(rows()) is a table.

    folders      in which rows are looked for; else those that ship and those in ./results
    coordinates  that the rows must have, such as run="exp1", K=6; a list of values means any of
    them"""
    return [row.flat() for row in where(gather(folders), **coordinates)]


def models(folder: str | Path = SHIPPED) -> list[dict[str, Any]]:
    """What ships: each model's name, what it was trained on, and K_max by the paper's rule."""
    from composcope.runs.config import Config  # imports torch, which reading rows does not need

    table = []
    for path in sorted(Path(folder).glob("*/config.json")):
        config = Config.load(path)
        fewest, most = config.objects
        found = only(
            gather([path.parent]),
            what="length/k_max",
            rule="paper",
            snapshot="final",
            intervention=None,
            run=path.parent.name,
        )
        line = {
            "name": path.parent.name,
            "conditioner": config.conditioner,
            "labels": config.labels,
            "net": config.net,
            "objects": str(most) if fewest == most else f"{fewest}-{most}",
            "pixels": config.architecture.resolution,
            "view": config.view,
            "images": config.recipe.images,
            "K_max": found.value if found else None,
            "low": found.low if found else None,
            "high": found.high if found else None,
        }
        table.append(line)
    return table


def coordinates_of(words: Sequence[str]) -> dict[str, Any]:
    """Coordinates from a command line: ["run=exp1", "K=6"] -> {"run": "exp1", "K": 6}."""
    kinds = get_type_hints(Row)
    found: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in kinds or not text:
            raise InputError(f"{word!r} is no coordinate of rows, such as run=exp1 or K=6")
        try:
            found[name] = msgspec.convert(text, kinds[name], strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"{word!r}: {error}") from None
    return found
