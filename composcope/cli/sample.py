"""composcope sample exp1 --asked "0.65,0.65 0.35,0.35" -n 8 --out sheet.png

Draw images with a trained model, the asked places as red dots on the sheet."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from composcope import draw, options
from composcope.errors import InputError
from composcope.files import check_file, write_png
from composcope.locality.intervention import perhaps_intervene
from composcope.report.sheets import sheet
from composcope.runs import load, own_device


@dataclass(frozen=True)
class Args(options.Weights):
    run: options.Run
    asked: options.Asked = ""
    n: options.Count = 8  # How many images.
    seed: int = 0  # Of the first image; the next ones follow.
    steps: int = 32  # Noise levels.
    solver: str = "heun"  # heun, euler or stochastic.
    batch: int = 64  # Images drawn at once.
    device: options.Device = field(default_factory=own_device)
    out: Path = Path("sheet.png")  # The picture.


def main(args: Args) -> None:
    if args.n < 1 or args.batch < 1 or args.steps < 2:
        raise InputError("at least one image (-n), one a batch and two noise levels are needed")
    check_file(args.out, ".png")
    model = load(args.run, args.snapshot, args.device, args.conditioner)
    conditions = model.parse(args.asked)
    drawer = perhaps_intervene(model, args.intervention, args.radius)
    how = (args.steps, args.solver, args.batch, "sampling", args.device)
    images = draw(drawer, [conditions] * args.n, range(args.seed, args.seed + args.n), *how)
    dots = [condition for condition in conditions if np.shape(condition) == (2,)]
    write_png(args.out, sheet(images, [dots] * args.n))
    countable = getattr(model.conditioner, "countable", False)
    after = options.line(args.conditioner, "evaluate" if countable else "locality", args.run)
    print(f"{args.out}   next: {after}")
