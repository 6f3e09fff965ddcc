"""`composcope audit`: is the score of your own denoiser local, in pixels and in conditions?"""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import Tensor

from composcope.errors import InputError
from composcope.files import read_json, write_png
from composcope.locality import audit
from composcope.progress import tell
from composcope.results import add_rows, check_out, jsonl
from composcope.runs.data import read
from composcope.scenes.sources import resized

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Args:
    """composcope audit my_model.py:denoiser --images photos --sigmas 10 1 0.1

    Measure any denoiser(x, sigma, cond) -> x0: what its pixels look at (equation 9), where its
    conditions act (equation 10) and how far they overlap. The file is imported, which runs it: name
    only what you trust.
    With conditions: --conditioner my_model.py:conditioner --asked asked.json, where asked.json has
    one list of conditions for each image in the order of their names, [["red", "blue"],
    ["green"]], or one for all. A conditioner has `features`, `__call__(condition_sets, seed)` and
    `left_out(condition_set, seed)`."""

    denoiser: Annotated[str, tyro.conf.Positional]
    """FILE.py:NAME or package.module:NAME of the denoiser."""
    images: Path
    """Clean images: a folder of pictures, or an .npz with `images`; they become x in [-1, 1]."""
    conditioner: Annotated[str | None, tyro.conf.arg(metavar="FILE.py:NAME")] = None
    """FILE.py:NAME of the conditioner; else the denoiser's own, if it has one."""
    asked: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """JSON: a list of condition sets, one an image, or one for all."""
    sigmas: tuple[float, ...] = ()
    """Noise levels; else nine from 80 down to 0.002."""
    size: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Side of x in pixels; else that of the denoiser's `shape`, else 64."""
    num: int = 8
    """Images at most, the first by name."""
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
    pictures = read(args.images)
    images = as_x(pictures[: args.num], shape_of(denoiser, args.size), args.images)
    asked = args.asked and condition_sets(args.asked, len(images), len(pictures))
    with foreign(args.denoiser, args.conditioner):
        found = audit(denoiser, images, asked, conditioner, args.sigmas or None, seed=args.seed)
    found = replace(found, about={"run": args.denoiser, **found.about})
    rows = found.rows()
    add_rows(args.out, rows)
    picture = args.out.with_suffix(".png")
    write_png(picture, found.plot())
    after = "wrap it in composcope.LocalConditions and audit it again"
    if not found.conditions:
        after = "--conditioner FILE.py:NAME --asked FILE tell where its conditions act"
    tell(
        found.table(),
        f"rows: {args.out}   figure: {picture}",
        f"next: {after}",
        json=jsonl(rows) if args.json else None,
    )


@contextmanager
def foreign(*sources: str | None) -> Iterator[None]:
    """An error inside what the user named is told with its file and line; any other is our own."""
    files = {str(Path(source.rpartition(":")[0]).resolve()) for source in sources if source}
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        theirs = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
        if not theirs:
            raise
        where = f"{Path(theirs[-1].filename).name}, line {theirs[-1].lineno}"
        raise InputError(f"{where}: {type(error).__name__}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    return (str(error).strip() or "no reason is given").splitlines()[0]


def object_at(source: str, what: str) -> Any:
    """What a file or a module calls so; the file is run because the user named it."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise InputError(f"{what} {source!r}: give FILE.py:NAME, such as my_model.py:denoiser")
    with foreign(source):
        try:
            is_file = place.endswith(".py")
            module = from_file(Path(place)) if is_file else importlib.import_module(place)
        except (ImportError, SyntaxError) as error:
            raise InputError(f"{what} {source!r} cannot be imported: {error}") from None
    if not hasattr(module, name):
        raise InputError(f"{what} {source!r}: {place} has no {name!r}")
    named = getattr(module, name)
    if inspect.isclass(named):
        raise InputError(f"{what} {source!r} is a class; make one in {place} and name that")
    return named


def from_file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    folder = str(path.resolve().parent)
    name = f"audited_{path.stem}"  # a file may be called as one of our modules is
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, folder)  # the file may import its neighbours
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def shape_of(denoiser: Any, side: int | None) -> Shape:
    """Of x: what the denoiser says, if it does; `side` wins."""
    try:
        channels, height, width = getattr(denoiser, "shape", None) or (3, 64, 64)
    except InputError:  # an adapted model that was made without one
        channels, height, width = 3, 64, 64
    if channels not in (1, 3):
        raise InputError(
            f"the denoiser's x has {channels} channels and pictures have 3 or are gray; give "
            "latents to composcope.audit in Python"
        )
    return channels, side or height, side or width


def as_x(pictures: list[np.ndarray], shape: Shape, path: Path) -> Tensor:
    """Pictures as x in [-1, 1]."""
    if not pictures:
        raise InputError(f"{path} holds no images")
    channels, height, width = shape
    same = np.stack([resized(picture, (width, height)) for picture in pictures])
    x = torch.from_numpy(same).permute(0, 3, 1, 2).to(torch.float32) / 127.5 - 1
    return x if channels == 3 else x.mean(1, keepdim=True)


def condition_sets(path: Path, count: int, pictures: int) -> list[tuple]:
    """One set for each of `count` images, of the file's one for each picture or one for all; lists
    of two numbers in it are places."""
    sets: list[list[Any]] = read_json(path, list[list[Any]])
    if len(sets) not in (1, count, pictures):
        raise InputError(
            f"{path} has {len(sets)} condition sets; give one for all, or one for each of "
            f"{pictures} images"
        )
    sets = sets * count if len(sets) == 1 else sets[:count]
    return [tuple(tuple(c) if isinstance(c, list) else c for c in one) for one in sets]
