"""composcope theory

Measure every claim of the paper's theory on exact toys (about half a minute on a laptop) and
say which hold. Rows go to results/theory.jsonl, curves and a figure for each group of claims
into a folder beside it."""

from dataclasses import dataclass
from pathlib import Path

from composcope import options
from composcope.report.theory import claims_table, toy_pictures
from composcope.results import check_out, tell_rows
from composcope.theory.measure import measured_toys


@dataclass(frozen=True)
class Args:
    only: tuple[str, ...] = ()
    """Toys to run: lemma_1, length, relaxation, feature_space, projective, machines; all if none is
    named."""
    out: options.Out = Path("results/theory.jsonl")
    json: options.Json = False


def main(args: Args) -> None:
    check_out(args.out)
    rows = measured_toys("theory", args.only, args.out, toy_pictures)
    made = f"curves and figures: {args.out.with_suffix('')}"
    tell_rows(rows, args.out, args.json, made, "composcope report", claims_table(rows))
