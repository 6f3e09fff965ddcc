"""composcope sim

Measure the claims of Structured Identity Mapping: closed forms against gradient descent, the order
of concepts, and Swing-by over seeds. Rows go to results/sim.jsonl, figures into a folder beside it.
With --circles, train a small diffusion model on circles; the same command goes on if stopped."""

from dataclasses import dataclass
from pathlib import Path

from composcope import options
from composcope.errors import InputError
from composcope.files import write_png
from composcope.report.circles import circles_figure
from composcope.report.theory import claims_table, toy_pictures
from composcope.results import add_rows, check_out, tell_rows
from composcope.theory.circles import DRAWS, circles
from composcope.theory.measure import measured_toys


@dataclass(frozen=True)
class Args:
    only: tuple[str, ...] = ()  # Toys: dynamics, order, swing_by, failure; all if none is named.
    circles: bool = False
    """Train a conditional diffusion model on red-big, red-small and blue-big circles; ask it for
    blue-small."""
    contrast: float = 0.5  # With --circles: how far apart red and blue are.
    images: int = 16_000  # With --circles: length of the training.
    seed: int = 0  # With --circles: of weights, noise and data.
    draws: int = DRAWS  # With --circles: images for each combination at each of sixteen moments.
    out: options.Out = Path("results/sim.jsonl")
    json: options.Json = False


def main(args: Args) -> None:
    if args.images < 1 or args.draws < 1:
        raise InputError("--images and --draws are at least 1")
    check_out(args.out)
    folder = args.out.with_suffix("")
    told = (args.out, args.json, f"curves and figures: {folder}", "composcope report")
    if not args.circles:
        options.check_unused(args, "contrast images seed draws", "is of --circles: give it as well")
        rows = measured_toys("sim", args.only, args.out, toy_pictures)
        tell_rows(rows, *told, claims_table(rows))
        return
    options.check_unused(args, "only", "names toys; --circles trains in place of them")
    run = folder / f"circles-{args.contrast:g}-{args.images}-{args.seed}"
    rows = circles(args.contrast, args.images, args.seed, run, args.draws)
    add_rows(args.out, rows)
    write_png(run / "circles.png", circles_figure(rows))
    tell_rows(rows, *told)
