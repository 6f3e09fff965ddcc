"""Claim (ours, after Kamb & Ganguli): without any training, local and conditional composes; global
memorises. With a single label an image, as in exp2, small patches compose and patches as wide as
the image do not (section E.3).

    python -m composcope.experiments.score_machines

Denoisers made of one set of training scenes of 1-3 objects, judged like every other model. Images
are kept as they are drawn: the same command goes on where it was stopped."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from composcope.adapters.convention import ours
from composcope.adapters.prediction import Adapted
from composcope.diffusion.pixels import Pixels
from composcope.evaluation import evaluate
from composcope.experiments import command
from composcope.files import write_png
from composcope.report.evaluation import curve_figure
from composcope.results import Row, add_rows, where
from composcope.scenes.condition import PAPER_LOCATIONS, LocationGrid
from composcope.scenes.dataset import Stream
from composcope.scenes.rules import Rules
from composcope.study.table import STEPS, TOLERANCE
from composcope.theory.score_machine import score_machine

GRID = 16  # and patches of five cells a side: the paper's local intervention (E.3)
TRAINED = 3


@dataclass(frozen=True)
class Kind:
    """Which objects are labelled (None: conditions are ignored), and how far a patch reaches."""

    name: str
    labels: str | None
    radius: int | None  # in cells; None: the whole image


KINDS = (
    Kind("local conditional machine", "all", 2),
    Kind("local machine", None, 2),
    Kind("ideal machine", "all", None),
    Kind("local one-label machine", "one", 2),
    Kind("ideal one-label machine", "one", None),
)


def main(
    scenes: int = 10_000,
    num: int = 24,
    most: int = len(PAPER_LOCATIONS),
    steps: int = STEPS,
    side: int = 64,
    out: Path = Path("results/evaluate-score-machines.jsonl"),
) -> list[Row]:
    """K_max of every machine by both rules, objects found and exact images for each K; a curve."""
    rows: list[Row] = []
    folder = out.with_suffix("")
    for machine in drawers(scenes, side):
        keep = folder / f"{machine.about['run']}-{scenes}-{side}-{steps}"
        found = evaluate(machine, range(most + 1), num, tolerance=TOLERANCE, steps=steps, keep=keep)
        add_rows(out, found)
        rows += found
        for row in where(found, what="length/k_max"):
            print(f"{row.run}: K_max by the {row.rule} rule {row.estimate}")
    write_png(folder / "exact.png", curve_figure(rows))
    print(f"rows: {out}; images and the curve: {folder}; composcope report shows them")
    return rows


def drawers(scenes: int, side: int) -> Iterator[Adapted]:
    """Machines are asked, judged and shown as models are."""
    conditioner = LocationGrid(GRID)
    rules = Rules(objects=(1, TRAINED), camera_jitter=0.0, lamp_jitter=0.0, view="square")
    for kind in KINDS:
        data = Stream(rules, side, conditioner, kind.labels or "all", 0).batch(0, scenes)
        cond = data.cond if kind.labels else None
        pixels = Pixels.measure(data.images, fixed=True)
        machine = score_machine(pixels.encode(data.images), cond, GRID, kind.radius)
        drawer = Adapted(machine, ours, conditioner, (3, side, side), pixels.decode)
        drawer.view = rules.view
        drawer.about = {"run": kind.name, "trained": TRAINED, "labels": kind.labels}
        yield drawer


if __name__ == "__main__":
    command(main)
