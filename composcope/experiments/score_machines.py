"""Claim (ours, after Kamb & Ganguli): without any training, local and conditional composes; global memorises.
With a single label an image, as in exp2, small patches compose and patches as wide as the image do not (section E.3).

    python -m composcope.experiments.score_machines

Denoisers made of one set of training scenes of 1-3 objects, judged like every other model. Images are kept as they are
drawn: the same command goes on where it was stopped.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import tyro

from composcope.diffusion.pixels import Pixels
from composcope.evaluation.detect import load as load_detector
from composcope.evaluation.k_max import Error, is_right, k_max, paper_rule, strict_rule, wilson
from composcope.evaluation.length import Judged, length, sampler
from composcope.evaluation.oracle import Drawer
from composcope.files import write_png
from composcope.report.evaluation import curve
from composcope.report.sheets import sheet
from composcope.results import Row, add
from composcope.scenes.condition import LocationGrid
from composcope.scenes.dataset import Stream
from composcope.scenes.rules import Rules
from composcope.theory.score_machine import score_machine

GRID, SIDE, TRAINED = 8, 32, 3
MACHINES: dict[str, tuple[str | None, int | None]] = {  # labels of the training scenes, radius of a patch in cells
    "local conditional machine": ("all", 1),
    "local machine": (None, 1),
    "ideal machine": ("all", None),
    "local one-label machine": ("one", 1),
    "ideal one-label machine": ("one", None),
}


def main(
    scenes: int = 10_000,
    num: int = 24,
    most: int = 12,
    steps: int = 10,
    out: Path = Path("results/evaluate-score-machines.jsonl"),
) -> list[Row]:
    """K_max of every machine by both rules; objects found and exact images for each K; a sheet and a curve."""
    judged, rows, folder = {}, [], out.with_suffix("")
    for name, draw in drawers(scenes, steps):
        judged[name] = length(draw, "paper", range(most + 1), num, 1 / GRID, folder / f"{name}-{scenes}-{steps}")
        found = [*by_K(name, judged[name]), *verdicts(name, judged[name])]
        add(out, found)
        rows += found
        print("   ".join(f"{row.claim} {row.value} [{row.low}, {row.high}]" for row in found[-2:]), f"  {name}")
    pictures(folder, judged, rows)
    return rows


def drawers(scenes: int, steps: int) -> Iterator[tuple[str, Drawer]]:
    conditioner = LocationGrid(GRID)
    rules = Rules(objects=(1, TRAINED), camera_jitter=0.0, lamp_jitter=0.0)
    for name, (labels, radius) in MACHINES.items():
        data = Stream(rules, SIDE, conditioner, labels or "all", 0).batch(0, scenes)
        pixels = Pixels.measure(data.images, fixed=True)
        machine = score_machine(pixels.encode(data.images), data.cond if labels else None, GRID, radius)
        yield name, sampler(machine, conditioner, pixels.decode, (3, SIDE, SIDE), steps)


def by_K(name: str, judged: Mapping[int, Judged]) -> Iterator[Row]:
    """Mean objects found at the asked places, and the share of images with those and no others."""
    for K, one in judged.items():
        num = len(one.outcomes)
        setting = {"conditions": "paper", "num": num, "K": K}
        found = np.array([outcome.found for outcome in one.outcomes])
        mean, half = float(found.mean()), 1.96 * float(found.std(ddof=1)) / num**0.5
        yield Row("length/found", name, mean, setting, low=mean - half, high=mean + half)
        exact = float(np.mean([is_right(outcome, extras=False) for outcome in one.outcomes]))
        low, high = map(float, wilson(exact, num))
        yield Row("length/exact", name, exact, setting, low=low, high=high)


def verdicts(name: str, judged: Mapping[int, Judged]) -> Iterator[Row]:
    outcomes = {K: one.outcomes for K, one in judged.items()}
    error = Error.of(load_detector(SIDE)[1], "paper")
    for rule, succeeds in (("paper", paper_rule(TRAINED, error)), ("strict", strict_rule)):
        found = k_max(outcomes, succeeds, extras=MACHINES[name][0] == "one")
        setting = {"conditions": "paper", "num": len(outcomes[1])}
        yield Row(f"length/k_max_{rule}", name, found.value, setting, low=found.low, high=found.high)


def pictures(folder: Path, judged: Mapping[str, Mapping[int, Judged]], rows: list[Row]) -> None:
    """A row for each machine, a column for each K, the first image of each; and the share of exact images over K."""
    all_K = [one for of_name in judged.values() for one in of_name.values()]
    found = [[(f.x, f.y) for f in one.found[0]] for one in all_K]
    images, asked = np.stack([one.images[0] for one in all_K]), [one.asked[0] for one in all_K]
    write_png(folder / "sheet.png", sheet(images, asked, found, columns=len(all_K) // len(judged)))
    write_png(folder / "exact.png", curve(rows))


if __name__ == "__main__":
    tyro.cli(main)
