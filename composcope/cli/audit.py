"""`composcope audit`: is the score of your own denoiser local, in pixels and in conditions?"""

import importlib
import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from torch import Tensor

from composcope.errors import InputError
from composcope.files import read_json, write_png
from composcope.locality import audit
from composcope.results import add_rows, check_out, jsonl
from composcope.runs.data import Stored


@dataclass(frozen=True)
class Args:
    """composcope audit my_model.py:denoiser --images photos --sigmas 10 1 0.1

    Measure any denoiser(x, sigma, cond) -> x0: what its pixels look at (equation 9), where its
    conditions act (equation 10) and how far they overlap. The file is imported, which runs it: name
    only what you trust.
    With conditions: --conditioner my_model.py:conditioner --asked asked.json, where asked.json has
    one list of conditions for each image, [["red", "blue"], ["green"]], or one for all. A
    conditioner has `features`, `__call__(condition_sets, seed)` and `left_out(condition_set,
    seed)`."""

    denoiser: Annotated[str, tyro.conf.Positional]
    """FILE.py:NAME or package.module:NAME of the denoiser."""
    images: Path
    """Clean images: a folder of pictures, or an .npz with `images`; they become x in [-1, 1]."""
    conditioner: Annotated[str | None, tyro.conf.arg(metavar="package.module:Class")] = None
    """FILE.py:NAME of the conditioner; else the denoiser's own, if it has one."""
    asked: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """JSON: a list of condition sets, one an image, or one for all."""
    sigmas: tuple[float, ...] = ()
    """Noise levels; else nine from 80 down to 0.002."""
    size: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Side of x in pixels; else that of the denoiser's `shape`, else 64."""
    num: int = 8
    """Images."""
    seed: int = 0
    """Of the noise; image i has seed + i."""
    out: Path = Path("results/audit.jsonl")
    """Where the rows go; the figure goes beside it."""
    json: bool = False
    """Print the rows as JSON lines."""


def main(args: Args) -> None:
    check_out(args.out)
    if args.num < 1 or (args.size is not None and args.size < 1):
        raise InputError("--num and --size are at least 1")
    denoiser = object_at(args.denoiser, "denoiser")
    conditioner = None if args.conditioner is None else object_at(args.conditioner, "--conditioner")
    images = audited_images(args, denoiser)
    asked = None if args.asked is None else condition_sets(args.asked, len(images))
    found = audit(denoiser, images, asked, conditioner, args.sigmas or None, seed=args.seed)
    found = replace(found, about={"run": args.denoiser, **found.about})
    rows = found.rows()
    add_rows(args.out, rows)
    picture = args.out.with_suffix(".png")
    write_png(picture, found.plot())
    words = sys.stderr if args.json else sys.stdout
    print(found.table(), file=words)
    print(f"rows: {args.out}   figure: {picture}", file=words)
    print("next: wrap it in composcope.LocalConditions and audit it again", file=words)
    if args.json:
        sys.stdout.write(jsonl(rows))


def object_at(source: str, what: str) -> Any:
    """What a file or a module calls so; the file is run because the user named it."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise InputError(f"{what} {source!r}: give FILE.py:NAME, such as my_model.py:denoiser")
    try:
        module = from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{what} {source!r} cannot be imported: {error}") from None
    if not hasattr(module, name):
        raise InputError(f"{what} {source!r}: {place} has no {name!r}")
    return getattr(module, name)


def from_file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    folder = str(path.resolve().parent)
    name = f"audited_{path.stem}"  # a file may be called as one of our modules is
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, folder)  # the file may import its neighbours
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def audited_images(args: Args, denoiser: Any) -> Tensor:
    """At most `num` of the images, in [-1, 1]."""
    shape = getattr(denoiser, "shape", None)
    side = args.size or (shape[-1] if shape else 64)
    stored = Stored(args.images, side, args.seed)
    images = stored(0, min(args.num, len(stored.images)))[0]
    return images.to(torch.float32)


def condition_sets(path: Path, count: int) -> list[tuple]:
    """One set an image; lists of two numbers in it are places."""
    sets: list[list[Any]] = read_json(path, list[list[Any]])
    if len(sets) == 1:
        sets = sets * count
    return [tuple(tuple(c) if isinstance(c, list) else c for c in one) for one in sets]
