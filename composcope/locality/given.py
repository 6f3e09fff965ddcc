"""What a user gives to an audit: a denoiser out of a file of theirs, and what is asked of it."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from composcope.errors import InputError
from composcope.files import read_json


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


def from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    name = f"audited_{path.stem}"  # a file may be called as one of our modules is
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, str(path.resolve().parent))  # the file may import its neighbours
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def read_condition_sets(path: Path, count: int) -> list[tuple]:
    """One set an image; lists of two numbers in it are places."""
    sets: list[list[Any]] = read_json(path, list[list[Any]])
    if len(sets) == 1:
        sets = sets * count
    return [tuple(tuple(c) if isinstance(c, list) else c for c in one) for one in sets]
