"""composcope locality exp1 --noise-levels 9

Measure a trained model at several noise levels: pixel gradients (equation 9), the influence of
each condition (equation 10), the metrics made of them and one conditional locality; rows, a
table, heatmaps (Figure 2) and curves (Figures 10, 12). A noise level once measured is kept: the
same command goes on where it was stopped."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from composcope import options
from composcope.errors import InputError
from composcope.files import write_pngs
from composcope.locality import MAPS, locality
from composcope.locality.intervention import perhaps_intervene
from composcope.locality.table import table_of
from composcope.report.locality import curves, heatmaps
from composcope.results import add_rows, check_out, own_folder, read_arrays, tell_rows
from composcope.runs import load, own_device
from composcope.runs.data import shown_images


@dataclass(frozen=True)
class Args(options.Weights):
    run: options.Run
    asked: options.Conditions = None
    noise_levels: int = 9  # Noise levels, from sigma 80 down to 0.002, spaced as in sampling.
    states: Literal["trajectory", "noised"] = "trajectory"
    """The model's own path from noise, or training images with noise."""
    images: options.FileOrDir = None
    """Images to put noise on in place of the run's own: an .npz with `images`, or a folder of
    pictures."""
    num: int = 16  # Samples at each noise level.
    seed: int = 0  # Of the noise; sample i has seed + i.
    memory: int = 256  # Megabytes for the activations of one backward pass.
    out: options.Out = Path("results/locality.jsonl")
    device: options.Device = field(default_factory=own_device)
    json: options.Json = False


def main(args: Args) -> None:
    check_out(args.out)
    if args.noise_levels < 1 or args.num < 1 or args.memory < 1:
        raise InputError("--noise-levels, --num and --memory are at least 1")
    if args.images is not None and args.states != "noised":
        raise InputError("--images are to put noise on: give --states noised as well")
    model = load(args.run, args.snapshot, args.device, args.conditioner)
    measured = perhaps_intervene(model, args.intervention, args.radius)
    asked = None if args.asked is None else model.parse(args.asked)
    clean = None  # images to put noise on, in the model's x; a trajectory needs none
    if args.states == "noised":
        clean = model.pixels.encode(shown_images(model.config, args.num, args.images, args.seed))
    changes = (args.asked, args.intervention, args.radius, args.num, args.seed, str(args.images))
    levels = args.noise_levels if args.states == "trajectory" else None
    name = f"{model.name}-{args.snapshot}-{args.states}"
    keep = own_folder(args.out, name, model.fingerprint, changes, levels)
    how = (args.noise_levels, args.num, args.states, args.seed, clean, keep)
    rows = locality(measured, asked, *how, memory=args.memory << 20, device=args.device)
    add_rows(args.out, rows)
    write_pngs(keep, {"heatmaps": heatmaps(read_arrays(keep / MAPS)), "curves": curves(rows)})
    then = "composcope report"
    if getattr(model.conditioner, "countable", False):  # words are not
        then = f"{options.line(args.conditioner, 'evaluate', args.run)}; {then}"
    tell_rows(rows, args.out, args.json, f"maps and pictures: {keep}", then, table_of(rows))
