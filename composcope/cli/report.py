"""`composcope report`: everything measured so far -> one HTML page."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from composcope.errors import InputError
from composcope.files import write_text
from composcope.report.page import Picture, page, summary
from composcope.results import Row, read
from composcope.runs.model import SHIPPED

SECTIONS = {"evaluate": "length", "locality": "locality", "features": "features", "theory": "theory", "sim": "sim"}


@dataclass(frozen=True)
class Args:
    """composcope report --study study/laptop --out report

    One self-contained page of every row and picture in the study's folder and in results/; where a run was not measured
    there, the rows that ship with the models stand in.
    """

    study: Path | None = None
    """folder of `composcope reproduce`, with its preset (study/laptop)"""
    results: Path = Path("results")
    """folder of rows and pictures made by single commands"""
    out: Path = Path("report")
    """folder of the page"""


def main(args: Args) -> None:
    folders = [args.results, *([args.study / "results"] if args.study else [])]
    if args.study and not args.study.is_dir():
        raise InputError(f"--study: there is no folder {args.study}; composcope reproduce makes it")
    rows = gather([SHIPPED, *folders])
    if not rows:
        raise InputError(
            f"nothing is measured yet: no rows in {', '.join(map(str, folders))} or with the shipped models"
        )
    write_text(args.out / "index.html", page(rows, pictures([SHIPPED, *folders]), times(args.study)))
    print("\n".join(summary(rows)))
    print(f"{len(rows)} rows -> {args.out / 'index.html'}")


def gather(folders: Iterable[Path]) -> list[Row]:
    """Rows of all files below the folders; of rows with one key the last folder's counts."""
    found: dict[str, Row] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.jsonl")):
            if path.name != "log.jsonl":
                found |= {row.key: row for row in read(path)}
    return list(found.values())


def pictures(folders: Iterable[Path]) -> list[Picture]:
    """Every PNG in a folder that one of the measuring commands made; the section is the command's."""
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*.png")):
            words = path.relative_to(folder).with_suffix("").parts
            command = next((name for name in SECTIONS if any(word.startswith(name) for word in words)), None)
            if command:
                found.append(Picture(SECTIONS[command], path, " / ".join(words)))
    return found


def times(study: Path | None) -> dict[str, float]:
    """Minutes of each node of the study that is done."""
    markers = sorted((study / "done").glob("*.json")) if study else []
    return {marker.stem: json.loads(marker.read_text())["minutes"] for marker in markers}
