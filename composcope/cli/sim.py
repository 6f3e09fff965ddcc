"""`composcope sim`: Structured Identity Mapping: its claims, how often Swing-by is seen, circles
drawn by diffusion."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from composcope.errors import InputError
from composcope.files import write_png
from composcope.progress import track
from composcope.report.theory import circles_figure, claims_table, toy_figure
from composcope.results import Row, add_rows, check_out, jsonl
from composcope.theory.circles import DRAWS, circles
from composcope.theory.measure import sim, toys_named
from composcope.theory.swing_by import SIM


@dataclass(frozen=True)
class Args:
    """composcope sim

    Measure the claims of Structured Identity Mapping: closed forms against gradient descent, the
    order of concepts, and Swing-by as a frequency over seeds (about half a minute on a laptop).
    Rows go to results/sim.jsonl, curves and figures into a folder beside it. With --circles, train
    a small diffusion model on circles instead (minutes; the same command goes on where it was
    stopped)."""

    only: tuple[str, ...] = ()
    """Toys to run: dynamics, order, swing_by, failure; all if none is named."""
    circles: bool = False
    """Train a conditional diffusion model on red-big, red-small and blue-big circles; ask it for
    blue-small."""
    contrast: float = 0.5
    """With --circles: how far apart red and blue are."""
    images: int = 16_000
    """With --circles: length of the training."""
    seed: int = 0
    """With --circles: of weights, noise and data."""
    draws: int = DRAWS
    """With --circles: images for each combination at each of sixteen moments."""
    out: Path = Path("results/sim.jsonl")
    """Where the rows go; curves and figures go into a folder of that name."""
    json: bool = False
    """Print the rows as JSON lines in place of the table."""


def main(args: Args) -> None:
    names = toys_named(SIM, args.only)
    if args.images < 1 or args.draws < 1:
        raise InputError("--images and --draws are at least 1")
    check_out(args.out)
    folder = args.out.with_suffix("")
    rows = trained(args, folder) if args.circles else measured(args, names, folder)
    if args.json:
        sys.stdout.write(jsonl(rows))
        return
    console = Console()
    if not args.circles:
        console.print(claims_table(rows))
    console.print(
        f"rows: {args.out}; curves and figures: {folder}; composcope report shows them",
        highlight=False,
    )


def measured(args: Args, names: Sequence[str], folder: Path) -> list[Row]:
    """Rows and figure of each toy are on disk before the next begins."""
    torch.set_num_threads(1)  # the matrices are small: threads would only wait for each other
    rows = []
    for name in track(names, "sim"):
        found = sim([name], folder)
        add_rows(args.out, found)
        rows += found
        if figure := toy_figure("sim", name, folder):
            write_png(folder / f"{name}.png", figure)
    return rows


def trained(args: Args, folder: Path) -> list[Row]:
    run = folder / f"circles-{args.contrast:g}-{args.images}-{args.seed}"
    rows = circles(args.contrast, args.images, args.seed, run, args.draws)
    add_rows(args.out, rows)
    write_png(run / "circles.png", circles_figure(rows))
    return rows
