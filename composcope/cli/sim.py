"""`composcope sim`: Structured Identity Mapping, its claims, and how often Swing-by is seen."""

from dataclasses import dataclass
from pathlib import Path

from composcope.cli.theory import run
from composcope.theory.swing_by import STUDIES


@dataclass(frozen=True)
class Args:
    """composcope sim

    Measure the claims of Structured Identity Mapping: closed forms against gradient descent, the order of concepts, and
    Swing-by as a frequency over seeds (about half a minute on a laptop). Rows go to results/sim.jsonl, figures
    beside it.
    """

    only: tuple[str, ...] = ()
    """Studies to run: dynamics, order, swing_by, failure; all if none is named."""
    out: Path = Path("results/sim.jsonl")
    """Where the rows go; figures go beside it."""
    json: bool = False
    """Print the rows as JSON lines in place of the table."""


def main(args: Args) -> None:
    run("sim", STUDIES, args.only, args.out, args.json)
