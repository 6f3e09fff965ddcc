"""`composcope locality`: what every pixel of a model's score looks at: pixels and conditions."""

import hashlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from torch import Tensor

from composcope.errors import InputError
from composcope.files import write_png
from composcope.locality import INTERVENTIONS, intervene, locality
from composcope.locality.audit import table_of
from composcope.locality.measure import MAPS
from composcope.report.locality import curves, heatmaps
from composcope.results import add_rows, check_out, jsonl
from composcope.results.arrays import read_arrays
from composcope.runs import Model, load
from composcope.runs.data import Stored, images_of
from composcope.runs.model import own_device


@dataclass(frozen=True)
class Args:
    """composcope locality exp1 --noise-levels 9

    Measure a trained model at several noise levels: pixel gradients (equation 9), the influence of
    each condition (equation 10), the metrics made of them and one conditional locality; rows, a
    table, heatmaps (Figure 2) and curves (Figures 10, 12). A noise level once measured is kept: the
    same command goes on where it was stopped."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A shipped model by name, or a run folder."""
    asked: Annotated[str | None, tyro.conf.arg(metavar="CONDITIONS")] = None
    """Conditions, such as "0.65,0.65 0.35,0.35" or "red blue"; else the usual four of the model."""
    intervention: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Measure the model with an intervention: local, smooth, annealed, own, peaks, within or composed."""
    radius: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Of the intervention, in image sides."""
    noise_levels: int = 9
    """Noise levels, from sigma 80 down to 0.002, spaced as in sampling."""
    states: Literal["trajectory", "noised"] = "trajectory"
    """The model's own path from noise, or training images with noise."""
    images: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Images to put noise on in place of the run's own: an .npz with `images`, or a folder of
    pictures."""
    num: int = 16
    """Samples at each noise level."""
    snapshot: str = "final"
    """early, middle or final weights of the run."""
    seed: int = 0
    """Of the noise; sample i has seed + i."""
    memory: int = 256
    """Megabytes for the activations of one backward pass."""
    out: Path = Path("results/locality.jsonl")
    """Where the rows go; maps and pictures go into a folder beside it."""
    device: str = field(default_factory=own_device)
    """Where the network runs (a GPU was not tried here)."""
    json: bool = False
    """Print the rows as JSON lines."""


def main(args: Args) -> None:
    check_out(args.out)
    if args.noise_levels < 1 or args.num < 1 or args.memory < 1:
        raise InputError("--noise-levels, --num and --memory are at least 1")
    if args.intervention is not None and args.intervention not in INTERVENTIONS:
        names = ", ".join(INTERVENTIONS)
        raise InputError(f"--intervention: there is no {args.intervention!r}; there are {names}")
    if args.images is not None and args.states != "noised":
        raise InputError("--images are to put noise on: give --states noised as well")
    model = load(args.run, args.snapshot, args.device)
    measured = intervene(model, args.intervention, args.radius) if args.intervention else model
    keep = args.out.with_suffix("") / keep_folder(args, model)
    rows = locality(
        measured,
        asked_conditions(model, args.asked),
        args.noise_levels,
        args.num,
        args.states,
        args.seed,
        clean_images(args, model),
        keep,
        memory=args.memory << 20,
        device=args.device,
    )
    add_rows(args.out, rows)
    write_png(keep / "heatmaps.png", heatmaps(read_arrays(keep / MAPS)))
    write_png(keep / "curves.png", curves(rows))
    words = sys.stderr if args.json else sys.stdout
    print(table_of(rows), file=words)
    print(f"rows: {args.out}   maps and pictures: {keep}", file=words)
    print(f"next: composcope evaluate {args.run}, then composcope report", file=words)
    if args.json:
        sys.stdout.write(jsonl(rows))


def asked_conditions(model: Model, asked: str | None) -> tuple | None:
    if asked is None:
        return None
    if model.conditioner is None:
        raise InputError(f"--asked {asked!r}: nothing can be asked of {model.name}")
    return model.conditioner.parse(asked)


def keep_folder(args: Args, model: Model) -> str:
    """A folder of its own for everything that changes what is measured at a noise level."""
    changes = (args.asked, args.intervention, args.radius, args.num, args.seed, str(args.images))
    levels = args.noise_levels if args.states == "trajectory" else None
    digest = hashlib.sha256(repr((model.fingerprint, changes, levels)).encode()).hexdigest()[:8]
    return f"{model.name}-{args.snapshot}-{args.states}-{digest}"


def clean_images(args: Args, model: Model) -> Tensor | None:
    """Images to put noise on, in the model's x; a trajectory needs none."""
    if args.images is not None:
        shown = Stored(args.images, model.resolution, args.seed)(0, args.num)[0]
    elif args.states == "noised":
        shown = images_of(model.config)(0, args.num)[0]
    else:
        return None
    return model.pixels.encode(shown)
