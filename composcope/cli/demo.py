"""`composcope demo`: scenes, what the shipped models draw, live, where their scores look, and the report."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Image as Picture

from composcope.cli import report
from composcope.cli.locality import draw as draw_locality
from composcope.cli.locality import looked_at, row_of
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise_levels
from composcope.evaluation.length import Judged, length, sampler
from composcope.evaluation.oracle import Drawer
from composcope.files import write_png
from composcope.locality.audit import audit
from composcope.locality.intervention import LocalConditions, Nearest
from composcope.report.page import Time
from composcope.report.sheets import sheet
from composcope.results import Row, add
from composcope.runs import load
from composcope.runs.model import SHIPPED
from composcope.scenes import PAPER_LOCATIONS, Rules, render, sample
from composcope.scenes.condition import LocationGrid
from composcope.scenes.dataset import Stream
from composcope.theory.score_machine import score_machine

K_SHOWN = (1, 3, 6, 9)  # the paper's Figure 1
SHOWN = {  # what is drawn live: a shipped model, and whether its conditions are made local at sampling time
    "exp1": ("exp1", False),
    "exp2": ("exp2", False),
    "exp3": ("exp3", False),
    "exp2l": ("exp2l", False),
    "exp2+local": ("exp2", True),
}
MACHINE = "local conditional machine"
LOOKED_AT = ("exp1", "exp2")


@dataclass(frozen=True)
class Args:
    """composcope demo --out report

    The main job in a few minutes: a sheet of scenes; the shipped models asked for 1, 3, 6 and 9 objects, counted live;
    where their scores look; and the page with every number that ships with them.
    """

    out: Path = Path("report")
    """folder of the page and its pictures"""
    num: int = 4
    """images drawn for each number of objects"""
    steps: int = 12
    """steps of the sampler"""
    seed: int = 0
    """of the noise"""


def main(args: Args) -> None:
    took: list[Time] = []
    live = args.out / "live"
    (live / "rows.jsonl").unlink(missing_ok=True)
    with timed("scenes of 1 to 10 objects", took):
        write_png(args.out / "scenes.png", scenes_sheet())
    print(f"scenes with their labels: {args.out / 'scenes.png'}")
    for name in (*SHOWN, MACHINE):
        with timed(f"{name} drawn and counted", took):
            draw(name, args, live)
    for name in LOOKED_AT:
        if shipped(name):
            with timed(f"where {name} looks", took):
                look(name, live / name, args.seed)
    seconds = 60 * sum(time.minutes for time in took)
    print(f"{seconds:.0f} seconds. K_max below: from the rows that ship with the models")
    report.main(report.Args(results=args.out, out=args.out), took)


@contextmanager
def timed(what: str, took: list[Time]) -> Iterator[None]:
    began = time.monotonic()
    yield
    took.append(Time(what, (time.monotonic() - began) / 60, "composcope demo"))


def shipped(run: str) -> bool:
    return (SHIPPED / run / "config.json").exists()


def draw(name: str, args: Args, live: Path) -> None:
    """Figure 1, live: K = 1, 3, 6, 9 of the paper's places, counted; a sheet, rows and a line in the terminal."""
    if name != MACHINE and not shipped(SHOWN[name][0]):
        print(f"{name:10} does not ship; composcope reproduce --only {SHOWN[name][0]} trains it")
        add(live / "rows.jsonl", [Row("live/found", name, None)])
        return
    drawer, cell = machine(args.steps) if name == MACHINE else of_model(*SHOWN[name], args.steps)
    judged = length(drawer, "paper", K_SHOWN, args.num, cell, seed=args.seed)
    found = {K: float(np.mean([outcome.found for outcome in one.outcomes])) for K, one in judged.items()}
    add(live / "rows.jsonl", [Row("live/found", name, mean, {"K": K, "num": args.num}) for K, mean in found.items()])
    write_png(live / name / "drawn.png", sheet_of(judged))
    print(f"{name:10} " + "  ".join(f"asked {K}: {mean:.1f} there" for K, mean in found.items()))


def of_model(run: str, local: bool, steps: int) -> tuple[Drawer, float]:
    """The sampler of a shipped model, and the side of its cells."""
    model = load(run)
    denoiser = LocalConditions(model, model.conditioner, Nearest()) if local else model
    cell = 1 / model.config.architecture.grid_size
    return sampler(denoiser, model.conditioner, model.pixels.decode, model.shape, steps), cell


def machine(steps: int, scenes: int = 10_000, grid: int = 8, side: int = 32) -> tuple[Drawer, float]:
    """Averages over patches of scenes of 1-3 objects, never trained (composcope/experiments/score_machines.py has its K_max)."""
    conditioner: Any = LocationGrid(grid)
    data = Stream(Rules(objects=(1, 3), camera_jitter=0.0, lamp_jitter=0.0), side, conditioner).batch(0, scenes)
    pixels = Pixels.measure(data.images, fixed=True)
    denoiser = score_machine(pixels.encode(data.images), data.cond, grid, radius=1)
    return sampler(denoiser, conditioner, pixels.decode, (3, side, side), min(steps, 10)), 1 / grid


def scenes_sheet(count: int = 24) -> Picture:
    """Scenes of 1 to 10 objects, a red dot at the place each object is labelled with."""
    scenes = [sample(0, i, Rules(objects=(1 + i * 10 // count, 1 + i * 10 // count))) for i in range(count)]
    return sheet(render(scenes, (160, 120)), [scene.places for scene in scenes], columns=6)


def sheet_of(judged: dict[int, Judged]) -> Picture:
    images = np.concatenate([one.images for one in judged.values()])
    asked: list[Sequence] = [conditions for one in judged.values() for conditions in one.asked]
    found = [[(f.x, f.y) for f in seen] for one in judged.values() for seen in one.found]
    return sheet(images, asked, found, columns=len(next(iter(judged.values())).images))


def look(name: str, folder: Path, seed: int, levels: int = 5, num: int = 2) -> None:
    """Figure 2, live and coarse: a few noise levels, a few samples."""
    model, asked = load(name), PAPER_LOCATIONS[:4]
    pixels = looked_at(asked, model.resolution)
    sigmas = [float(sigma) for sigma in noise_levels(levels + 2)[1:-2]]
    zeros = torch.zeros(num, *model.shape)
    found = audit(model, zeros, [asked] * num, model.conditioner, sigmas, pixels, "trajectory", seed)
    rows = [row_of(measured, name, {}, seed, model.config.objects[1]) for measured in found.rows]
    draw_locality(folder, model, found, rows, asked)
    print(f"{name:10} conditional locality {found.conditional_locality}, chance {found.chance:.2f}")
