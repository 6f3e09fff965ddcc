"""`composcope report`: everything measured so far -> one HTML page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from composcope.errors import InputError
from composcope.files import write_text
from composcope.report.material import material
from composcope.report.page import page
from composcope.report.words import facts, headline
from composcope.runs.model import SHIPPED


@dataclass(frozen=True)
class Args:
    """composcope report

    One page that opens anywhere, of every row and picture in results/, in the folder of a study and
    with the shipped models. What was measured here takes the place of what ships of the same run,
    unless it is of the same weights and of fewer images. Two runs side by side:
    composcope report --compare exp1 exp2"""

    study: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of `composcope reproduce`, with its preset (study/laptop)."""
    results: Path = Path("results")
    """Folder of rows and arrays made by single commands."""
    compare: Annotated[tuple[str, str] | None, tyro.conf.arg(metavar="RUN RUN")] = None
    """Two runs to put side by side, by the names their rows have, or by their folders."""
    out: Path = Path("report")
    """Folder of the page."""


def main(args: Args) -> None:
    if args.study and not args.study.is_dir():
        raise InputError(f"--study: there is no folder {args.study}; composcope reproduce makes it")
    folders = [args.results, *([args.study / "results"] if args.study else [])]
    found = material(SHIPPED, folders)
    if not found.rows:
        raise InputError(
            f"nothing is measured yet: no rows in {', '.join(map(str, folders))} or with the "
            "shipped models"
        )
    runs = [Path(run).resolve().name if Path(run).is_dir() else run for run in args.compare or ()]
    path = args.out / "index.html"
    write_text(path, page(found, runs))
    print(headline(found.rows))
    for fact in facts(found.rows):
        print(f"{fact.number:>5}  {fact.words}")
    print(f"{len(found.rows):,} rows -> {path}; open it in a browser")
