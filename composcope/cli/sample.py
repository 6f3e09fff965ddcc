"""`composcope sample`: a sheet of images drawn by a trained model, asked for given conditions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from composcope.diffusion.sample import check_solver, draw
from composcope.errors import InputError
from composcope.files import write_png
from composcope.locality import intervene
from composcope.report.sheets import sheet
from composcope.runs import load
from composcope.runs.model import own_device


@dataclass(frozen=True)
class Args:
    """composcope sample exp1 --asked "0.65,0.65 0.35,0.35" -n 8 --out sheet.png

    Draw images with a trained model, the asked places as red dots on the sheet."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or the name of a model that comes with the package."""
    asked: Annotated[str, tyro.conf.arg(aliases=["--locations", "--colors"])] = ""
    """What to draw: "0.65,0.65 0.35,0.35" (fractions of width and height), or "red blue"."""
    n: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 8
    """How many images."""
    seed: int = 0
    """Of the first image; the next ones follow."""
    steps: int = 32
    """Noise levels."""
    solver: str = "heun"
    """heun, euler or stochastic."""
    snapshot: str = "final"
    """early, middle or final."""
    intervention: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """At sampling time, without training: local, smooth, annealed, own, peaks, within or composed."""
    radius: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Of the intervention, in image sides."""
    conditioner: Annotated[str | None, tyro.conf.arg(metavar="package.module:Class")] = None
    """Of a run that was trained with a conditioner from outside."""
    batch: int = 64
    """Images drawn at once."""
    device: str = field(default_factory=own_device)
    """Where the network runs (a GPU was not tried here)."""
    out: Path = Path("sheet.png")
    """The picture."""


def main(args: Args) -> None:
    if args.n < 1 or args.batch < 1 or args.steps < 2:
        raise InputError("at least one image (-n), one a batch and two noise levels are needed")
    check_solver(args.solver)
    model = load(args.run, args.snapshot, args.device, args.conditioner)
    conditions = model.parse(args.asked)
    drawer = intervene(model, args.intervention, args.radius) if args.intervention else model
    images = draw(
        drawer,
        [conditions] * args.n,
        range(args.seed, args.seed + args.n),
        args.steps,
        args.solver,
        args.batch,
        "sampling",
        args.device,
    )
    dots = [condition for condition in conditions if np.shape(condition) == (2,)]
    write_png(args.out, sheet(images, [dots] * args.n))
    after = f"composcope locality {args.run} measures what its pixels look at"
    if model.conditioner is not None and model.conditioner.countable:
        after = f"composcope evaluate {args.run} counts what is drawn"
    print(f"{args.out}   next: {after}")
