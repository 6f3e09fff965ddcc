"""`composcope theory`: the paper's claims on distributions small enough to compute, as a table and as figures."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from composcope.errors import InputError
from composcope.files import write_png
from composcope.progress import track
from composcope.report.theory import FIGURES, table
from composcope.results import Row, add, jsonl, writable
from composcope.theory.claim import Claim, Study
from composcope.theory.claims import STUDIES


@dataclass(frozen=True)
class Args:
    """composcope theory

    Measure every claim of the paper's theory on exact toys (about half a minute on a laptop) and say which hold. Rows
    go to results/theory.jsonl, a figure for each group of claims beside it.
    """

    only: tuple[str, ...] = ()
    """Studies to run: lemma_1, length, relaxation, feature_space, projective, machines; all if none is named."""
    out: Path = Path("results/theory.jsonl")
    """Where the rows go; figures go beside it."""
    json: bool = False
    """Print the rows as JSON lines in place of the table."""


def main(args: Args) -> None:
    run("theory", STUDIES, args.only, args.out, args.json)


def run(what: str, studies: Mapping[str, Callable[[], Study]], only: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Run studies one by one; rows and figure of each are on disk before the next begins."""
    if unknown := set(only) - set(studies):
        raise InputError(f"there is no study {', '.join(sorted(unknown))}; there are {', '.join(studies)}")
    writable(out)
    torch.set_num_threads(1)  # the matrices are small: threads would only wait for each other
    rows = []
    for name in track(only or tuple(studies), what):
        study = studies[name]()
        found = [to_row(claim) for claim in study.claims]
        add(out, found)
        rows += found
        if name in FIGURES:
            write_png(out.with_name(f"{what}_{name}.png"), FIGURES[name](study.curves))
    if as_json:
        sys.stdout.write(jsonl(rows))
    else:
        Console().print(table(rows), f"rows: {out}; figures: {out.with_name(what)}_*.png")


def to_row(claim: Claim) -> Row:
    setting = {key: getattr(claim, key) for key in ("says", "rule", "predicted", "tolerance", "holds")}
    return Row(claim.name, "exact", claim.measured, setting, low=claim.low, high=claim.high)
