"""composcope report

One page that opens anywhere, of every row and picture in results/, in the folder of a study and
with the shipped models. What was measured here takes the place of what ships of the same run,
unless it is of the same weights and of fewer images. Two runs side by side:
composcope report --compare exp1 exp2"""

from dataclasses import dataclass
from pathlib import Path

from composcope import options
from composcope.errors import InputError
from composcope.report.material import material
from composcope.report.page import page_path, write_page
from composcope.report.words import facts, headline
from composcope.study.shipped import HERE, SHIPPED, check_folders


@dataclass(frozen=True)
class Args:
    study: options.Dir = None  # Folder of `composcope reproduce`, with its preset (study/laptop).
    results: Path = HERE  # Folder of rows and arrays made by single commands.
    compare: options.TwoRuns = None
    out: Path = Path("report")  # Folder of the page, or the page itself: a name that ends in .html.


def main(args: Args) -> None:
    page_path(args.out)  # what cannot be is refused before the page is made
    folders = [args.results, *([args.study / "results"] if args.study else [])]
    if args.study and not folders[-1].is_dir():
        made = "composcope reproduce makes it, in a folder of its preset, such as study/laptop"
        raise InputError(f"--study: there is no folder {folders[-1]}; {made}")
    check_folders("--results", [args.results])
    found = material(SHIPPED, folders)
    runs = [Path(run).resolve().name if Path(run).is_dir() else run for run in args.compare or ()]
    path = write_page(args.out, found, runs)
    lines = [f"{number:>5}  {words}" for number, words in facts(found.rows)]
    print(headline(found.rows), *lines, sep="\n")
    print(f"{len(found.rows):,} rows -> {path}; open it in a browser")
