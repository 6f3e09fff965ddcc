"""`composcope theory`: the paper's claims on distributions small enough to compute, as a table and
as figures."""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from composcope.files import write_png
from composcope.progress import track
from composcope.report.theory import claims_table, toy_figure
from composcope.results import add_rows, check_out, jsonl
from composcope.theory.claims import THEORY
from composcope.theory.measure import theory, toys_named


@dataclass(frozen=True)
class Args:
    """composcope theory

    Measure every claim of the paper's theory on exact toys (about half a minute on a laptop) and
    say which hold. Rows go to results/theory.jsonl, curves and a figure for each group of claims
    into a folder beside it."""

    only: tuple[str, ...] = ()
    """Toys to run: lemma_1, length, relaxation, feature_space, projective, machines; all if none is
    named."""
    out: Path = Path("results/theory.jsonl")
    """Where the rows go; curves and figures go into a folder of that name."""
    json: bool = False
    """Print the rows as JSON lines in place of the table."""


def main(args: Args) -> None:
    """Rows and figure of each toy are on disk before the next begins."""
    names = toys_named(THEORY, args.only)
    check_out(args.out)
    torch.set_num_threads(1)  # the matrices are small: threads would only wait for each other
    folder = args.out.with_suffix("")
    rows = []
    for name in track(names, "theory"):
        found = theory([name], folder)
        add_rows(args.out, found)
        rows += found
        if figure := toy_figure("theory", name, folder):
            write_png(folder / f"{name}.png", figure)
    if args.json:
        sys.stdout.write(jsonl(rows))
        return
    console = Console()
    console.print(claims_table(rows))
    console.print(
        f"rows: {args.out}; curves and figures: {folder}; composcope report shows them",
        highlight=False,
    )
