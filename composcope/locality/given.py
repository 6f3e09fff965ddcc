"""What a user gives to an audit: a denoiser out of a file of theirs, and what is asked of it."""

import inspect
from pathlib import Path
from typing import Any

from composcope.diffusion.denoiser import conditions_of
from composcope.errors import InputError, foreign
from composcope.files import read_json
from composcope.imports import module_at

Shape = tuple[int, int, int]


def object_at(source: str, what: str) -> Any:
    """What a file or a module calls so; the file is run because the user named it."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        runs = "; for trained runs: composcope locality" if what == "denoiser" else ""
        raise InputError(
            f"{what} {source!r}: give FILE.py:NAME, such as my_model.py:denoiser{runs}"
        )
    with foreign(source):
        try:
            module = module_at(place)
        except (ImportError, SyntaxError) as error:
            raise InputError(f"{what} {source!r} cannot be imported: {error}") from None
    if not hasattr(module, name):
        raise InputError(f"{what} {source!r}: {place} has no {name!r}")
    named = getattr(module, name)
    if inspect.isclass(named):
        raise InputError(f"{what} {source!r} is a class; make one in {place} and name that")
    return named


def x_shape(denoiser: Any, side: int | None) -> Shape:
    """Of x: what the denoiser says, if it does; `side` wins."""
    try:
        channels, height, width = getattr(denoiser, "shape", None) or (3, 64, 64)
    except InputError:  # an adapted model that was made without one
        channels, height, width = 3, 64, 64
    except (TypeError, ValueError):
        raise InputError(
            f"the denoiser's shape is (channels, height, width), not {denoiser.shape!r}"
        ) from None
    if channels not in (1, 3):
        raise InputError(
            f"the denoiser's x has {channels} channels and pictures have 3 or are gray; give "
            "latents to composcope.audit in Python"
        )
    return channels, side or height, side or width


def read_condition_sets(path: Path | None, count: int, pictures: int) -> list[tuple] | None:
    """One set for each of `count` images, of the file's one for each picture or one for all; lists
    of two numbers in it are places."""
    if path is None:
        return None
    sets: Any = read_json(path, Any)
    if not isinstance(sets, list) or not all(isinstance(one, list) for one in sets):
        like = '[["red", "blue"], ["green"]]'
        raise InputError(f"{path}: condition sets are a list of lists, as in {like}")
    if len(sets) not in (1, count, pictures):
        raise InputError(
            f"{path} has {len(sets)} condition sets; give one for all, or one for each of "
            f"{pictures} images"
        )
    sets = sets * count if len(sets) == 1 else sets[:count]
    return [conditions_of(one) for one in sets]
