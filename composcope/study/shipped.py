"""What comes with the package, and what was measured of it and here: tables to print or to analyse.

models(): a line a shipped model          rows(run="exp1", K=6): measurements, one flat dict each"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from rich.table import Table

from composcope.errors import InputError
from composcope.files import SHIPPED
from composcope.progress import terminal_table
from composcope.results import Row, gather, only, where

HERE = Path("results")  # where commands put their rows
Folders = Sequence[str | Path]
REACHED = {"K_max": "value", "low": "low", "high": "high"}  # of a row


def rows(
    folders: Folders | str | Path = (SHIPPED, HERE), **coordinates: Any
) -> list[dict[str, Any]]:
    """Measurements as flat dicts: pandas.DataFrame(rows()) is a table.

    folders: where rows are looked for; if none are given, among those that ship and in ./results.
    coordinates: what the rows must have, such as run="exp1", K=6; a list of values means any of
        them."""
    # A text would else be taken for the folders of its letters, and "/" is one.
    folders = [folders] if isinstance(folders, str | Path) else folders
    check_folders("rows", [Path(folder) for folder in folders])
    return [row.flat() for row in where(gather(folders), **coordinates)]


def models(folder: str | Path = SHIPPED) -> list[dict[str, Any]]:
    """The models that ship, a dict for each: name, what it was trained on, K_max by the paper's
    rule (by places alone where labels leave objects out), places filled of nine."""
    # These import torch, which reading rows does not need.
    from composcope.runs.config import Config
    from composcope.runs.model import conditioner_of
    from composcope.study.table import TOLERANCE

    table = []
    for path in sorted(Path(folder).glob("*/config.json")):
        config = Config.load(path)
        fewest, most = config.objects
        plain = {"snapshot": "final", "intervention": None, "run": path.parent.name}
        if conditioner := conditioner_of(config):
            plain["asked"] = conditioner.ways[0]
        measured = where(gather([path.parent]), tolerance=[TOLERANCE, None], **plain)
        found = only(measured, what="length/k_max", rule="places")
        found = found or only(measured, what="length/k_max", rule="paper")
        filled = only(measured, what="length/found", K=9)
        line = {
            "name": path.parent.name,
            "conditioner": config.conditioner,
            "labels": config.labels,
            "net": config.net,
            "objects": str(most) if fewest == most else f"{fewest}-{most}",
            "pixels": config.architecture.resolution,
            "view": config.view,
            "images": config.recipe.images,
            **{name: getattr(found, of, None) for name, of in REACHED.items()},
            "filled_of_9": getattr(filled, "value", None),
        }
        table.append(line)
    return table


def ships(run: str) -> bool:
    """Whether a model of this name comes with the package; says so where it does not."""
    if (SHIPPED / run / "config.json").exists():
        return True
    print(f"{run} does not ship; composcope reproduce --only {run} trains it")
    return False


def models_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """For the terminal: a line a model."""
    shown = terminal_table()
    shown.show_edge = False
    for heading in ("name", "asked by", "labels", "net", "objects", "images", "K_max", "of 9"):
        shown.add_column(heading, no_wrap=True)
    for line in found:
        K_max = "" if line["K_max"] is None else "{K_max:g} [{low:g}, {high:g}]".format(**line)
        filled = "" if line["filled_of_9"] is None else f"{line['filled_of_9']:.1f}"
        cells = [line[name] for name in ("name", "conditioner", "labels", "net", "objects")]
        shown.add_row(*cells, f"{line['images']:,}", K_max, filled)
    return shown


def check_folders(option: str, folders: Sequence[Path]) -> None:
    """An InputError for a folder that is none, but for ./results, which commands make."""
    for folder in folders:
        if folder != HERE and not folder.is_dir():
            raise InputError(f"{option}: there is no folder {folder}")


NONE = ("", "null", "None")  # how rows that do not have a coordinate are asked for
NOUNS = {int: "a whole number", float: "a number", bool: "true or false"}  # of coordinates


def coordinates_of(words: Sequence[str]) -> dict[str, list]:
    """Coordinates from a command line: ["run=a", "K=6", "K=9"] -> {"run": ["a"], "K": [6, 9]}."""
    kinds = get_type_hints(Row)
    found: dict[str, list] = {}
    for word in words:
        name, given, text = word.partition("=")
        if name not in kinds or not given:
            raise InputError(f"{word!r} is no coordinate of rows, such as run=exp1 or K=6")
        values = [None] if text in NONE else values_of(text, kinds[name])
        if not values:
            wanted = NOUNS.get(kinds_in(kinds[name])[0], "two numbers, such as 1,0")
            raise InputError(f"{word!r}: {name} is {wanted}")
        found.setdefault(name, []).extend(values)
    return found


def kinds_in(kind: Any) -> tuple:
    """The types that a coordinate may have, without None."""
    return tuple(one for one in get_args(kind) if one is not NoneType) or (kind,)


def values_of(text: str, kind: Any) -> list:
    """What a text may mean for a coordinate of this type: "7" as a value is a number or a word."""
    values = []
    for one in kinds_in(kind):
        given = text.split(",") if get_origin(one) is tuple else text
        with suppress(msgspec.ValidationError):
            values.append(msgspec.convert(given, one, strict=False))
    return values
