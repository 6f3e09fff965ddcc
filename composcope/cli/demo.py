"""`composcope demo`: scenes, what the shipped models draw, live, where their scores look, and the report."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL.Image import Image as Picture
from rich.console import Console

from composcope.cli import report
from composcope.cli.locality import draw as draw_locality
from composcope.cli.locality import looked_at, row_of
from composcope.diffusion.sample import noise_levels
from composcope.evaluation.length import Judged, length, sampler
from composcope.files import whole
from composcope.locality.audit import audit
from composcope.locality.intervention import LocalConditions, Nearest
from composcope.report.sheets import sheet
from composcope.runs import Model, load
from composcope.runs.model import SHIPPED
from composcope.scenes import PAPER_LOCATIONS, Rules, render, sample

K_SHOWN = (1, 3, 6, 9)  # the paper's Figure 1
SHOWN = {  # what is drawn live: a shipped model, and whether its conditions are made local at sampling time
    "exp1": ("exp1", False),
    "exp2": ("exp2", False),
    "exp3": ("exp3", False),
    "exp2l": ("exp2l", False),
    "exp2+local": ("exp2", True),
}
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
    steps: int = 18
    """steps of the sampler"""
    seed: int = 0
    """of the noise"""


def main(args: Args) -> None:
    began, console = time.monotonic(), Console()
    save(scenes_sheet(), args.out / "scenes.png")
    console.print(f"scenes with their labels: {args.out / 'scenes.png'}", highlight=False)
    shipped = {name: pair for name, pair in SHOWN.items() if (SHIPPED / pair[0] / "config.json").exists()}
    for name, (run, local) in shipped.items():
        judged = drawn(load(run), local, args)
        save(sheet_of(judged), args.out / "evaluate-live" / f"{name}.png")
        console.print(f"{name:10} {counted(judged)}", highlight=False)
    for name in LOOKED_AT:
        if name in shipped:
            look(load(name), args.out / f"locality-live-{name}", args.seed)
    if shipped:
        report.main(report.Args(results=args.out, out=args.out))
    console.print(f"{time.monotonic() - began:.0f} seconds", highlight=False)


def scenes_sheet(count: int = 24) -> Picture:
    """Scenes of 1 to 10 objects, a red dot at the place each object is labelled with."""
    scenes = [sample(0, i, Rules(objects=(1 + i * 10 // count, 1 + i * 10 // count))) for i in range(count)]
    return sheet(render(scenes, (160, 120)), [scene.places for scene in scenes], columns=6)


def drawn(model: Model, local: bool, args: Args) -> dict[int, Judged]:
    """Figure 1, live: K = 1, 3, 6, 9 of the paper's places, `num` images each, counted."""
    grid = model.config.architecture.grid_size
    denoiser = LocalConditions(model, model.conditioner, Nearest(grid=grid)) if local else model
    draw = sampler(denoiser, model.conditioner, model.pixels.decode, model.shape, args.steps)
    return length(draw, "paper", K_SHOWN, args.num, 1 / grid, seed=args.seed)


def counted(judged: dict[int, Judged]) -> str:
    """Objects found at asked places, on average, for each K."""
    means = {K: np.mean([outcome.found for outcome in one.outcomes]) for K, one in judged.items()}
    return "  ".join(f"asked {K}: {mean:.1f} there" for K, mean in means.items())


def sheet_of(judged: dict[int, Judged]) -> Picture:
    images = np.concatenate([one.images for one in judged.values()])
    asked: list[Sequence] = [conditions for one in judged.values() for conditions in one.asked]
    found = [[(f.x, f.y) for f in seen] for one in judged.values() for seen in one.found]
    return sheet(images, asked, found, columns=len(next(iter(judged.values())).images))


def look(model: Model, folder: Path, seed: int, levels: int = 5, num: int = 2) -> None:
    """Figure 2, live and coarse: a few noise levels, a few samples."""
    asked = PAPER_LOCATIONS[:4]
    pixels = looked_at(asked, model.resolution)
    zeros = torch.zeros(num, *model.shape)
    sigmas = [float(sigma) for sigma in noise_levels(levels + 2)[1:-2]]
    found = audit(model, zeros, [asked] * num, model.conditioner, sigmas, pixels, "trajectory", seed)
    rows = [row_of(measured, folder.name, {}, seed, model.config.objects[1]) for measured in found.rows]
    draw_locality(folder, model, found, rows, asked)


def save(picture: Picture, path: Path) -> None:
    with whole(path) as partial:
        picture.save(partial, "PNG")
