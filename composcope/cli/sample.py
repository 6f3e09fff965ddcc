"""`composcope sample`: a sheet of images drawn by a trained model, asked for given locations or colours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro

from composcope.diffusion.sample import Churn, noise_levels, sample
from composcope.errors import InputError
from composcope.files import write_png
from composcope.report.sheets import sheet
from composcope.runs.model import Model, load


@dataclass(frozen=True)
class Args:
    """composcope sample exp1 --locations "0.65,0.65 0.35,0.35" -n 8 --out sheet.png

    Draw images with a trained model, the asked locations as red dots on the sheet.
    """

    run: Annotated[str, tyro.conf.Positional]
    """A run folder, or the name of a model that comes with the package."""
    locations: str = ""
    """Places to put objects at: "u,v u,v ...", fractions of the width and of the height."""
    colors: str = ""
    """Colours to draw objects in: "red blue ...", for a model of colours."""
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
    batch: int = 64
    """Images drawn at once."""
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    """Where the network runs (a GPU was not tried here)."""
    out: Path = Path("sheet.png")
    """The picture."""


def asked(model: Model, args: Args) -> list:
    """The condition set of the command line; an InputError when the model is not for such conditions."""
    wanted = {"color": "colors", "none": ""}.get(model.config.conditioner, "locations")
    for name in ("locations", "colors"):
        if getattr(args, name) and name != wanted:
            raise InputError(f"{args.run} is not a model of {name}: ask for {wanted or 'nothing'}")
    if args.colors:
        return args.colors.replace(",", " ").split()
    try:
        return [tuple(float(part) for part in place.split(",")) for place in args.locations.split()]
    except ValueError:
        raise InputError(f'--locations {args.locations!r} is not "u,v u,v ..." such as "0.65,0.65 0.35,0.35"') from None


def main(args: Args) -> None:
    if args.n < 1 or args.batch < 1 or args.steps < 2:
        raise InputError("at least one image (-n), one a batch (--batch) and two noise levels (--steps) are needed")
    if args.solver not in ("heun", "euler", "stochastic"):
        raise InputError(f"there is no solver {args.solver!r}; the solvers are heun, euler, stochastic")
    model = load(args.run, args.snapshot, args.device)
    conditions = asked(model, args)
    cond = model.conditioner([conditions] * args.n) if model.conditioner else None
    solver, churn = ("heun", Churn()) if args.solver == "stochastic" else (args.solver, None)
    seeds = range(args.seed, args.seed + args.n)
    levels = noise_levels(args.steps)
    x = sample(model, seeds, model.shape, cond, levels, solver, churn, args.batch, "sampling", args.device)
    dots = [conditions if args.locations else []] * args.n
    write_png(args.out, sheet(model.pixels.decode(x), dots))
    print(args.out)
