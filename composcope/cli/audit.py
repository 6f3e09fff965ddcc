"""composcope audit my_model.py:denoiser --images photos --sigmas 10 1 0.1

Measure any denoiser(x, sigma, cond) -> x0: what its pixels look at (equation 9), where its
conditions act (equation 10) and how far they overlap. The file is imported, which runs it: name
only what you trust.
With conditions: --conditioner my_model.py:conditioner --asked asked.json, where asked.json has one
list of conditions for each image in the order of their names, [["red", "blue"], ["green"]], or one
for all. A conditioner has `features`, `__call__(condition_sets, seed)` and
`left_out(condition_set, seed)`."""

from dataclasses import dataclass, replace
from pathlib import Path

from tyro.conf import Positional

from composcope import audit, options
from composcope.errors import InputError
from composcope.files import write_png
from composcope.locality.given import object_at, read_condition_sets, x_shape
from composcope.pictures import MOST
from composcope.results import add_rows, check_out, own_folder, tell_rows
from composcope.runs.data import as_x, picture_readers


@dataclass(frozen=True)
class Args:
    denoiser: Positional[str]  # FILE.py:NAME or package.module:NAME of the denoiser.
    images: Path
    """Clean images: a folder of pictures, or an .npz with `images`; they become x in [-1, 1]."""
    conditioner: options.Class = None
    """Or package.module:NAME, of the conditioner; else the denoiser's own, if it has one."""
    asked: options.File = None  # JSON: a list of condition sets, one an image, or one for all.
    sigmas: tuple[float, ...] = ()  # Noise levels; else nine from 80 down to 0.002.
    size: options.Int = None  # Side of x in pixels; else that of the denoiser's `shape`, else 64.
    num: int = 8  # Images at most, the first by name.
    seed: int = 0  # Of the noise; image i has seed + i.
    out: Path = Path("results/audit.jsonl")  # Where the rows go; figures: a folder beside it.
    json: options.Json = False


def main(args: Args) -> None:
    check_out(args.out)
    if args.num < 1 or (args.size is not None and args.size < 1):
        raise InputError("--num and --size are at least 1")
    if args.size is not None and args.size**2 > MOST:
        raise InputError(f"--size {args.size}: more than {MOST} pixels are not measured")
    denoiser = object_at(args.denoiser, "denoiser")
    conditioner = None if args.conditioner is None else object_at(args.conditioner, "--conditioner")
    pictures = picture_readers(args.images)
    images = as_x(pictures[: args.num], x_shape(denoiser, args.size), args.images)
    asked = read_condition_sets(args.asked, len(images), len(pictures))
    found = audit(denoiser, images, asked, conditioner, args.sigmas or None, seed=args.seed)
    # As the user knows it: two networks of one class are two models.
    found = replace(found, about={**found.about, "run": args.denoiser})
    rows = found.rows()
    add_rows(args.out, rows)
    own = args.denoiser, found.about["setting"], args.sigmas, args.seed
    picture = own_folder(args.out, args.denoiser.rpartition(":")[2], *own).with_suffix(".png")
    write_png(picture, found.plot())
    then = "wrap it in composcope.LocalConditions and audit it again"
    if found.places is None:
        then = "audit composcope.LocalConditions(denoiser, neighbourhoods=Strongest())"
    if not found.conditions:
        then = "--conditioner FILE.py:NAME --asked FILE tell where its conditions act"
    tell_rows(rows, args.out, args.json, f"figure: {picture}", then, found.table())
