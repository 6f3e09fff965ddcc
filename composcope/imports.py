"""Modules of a user's own, by file or by name; importing one runs it, because the user named it."""

import importlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from composcope.errors import InputError


def module_at(place: str) -> ModuleType:
    """FILE.py, or package.module, which may lie where the command runs, as with `python -m`."""
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        return executed(path.resolve(), path.stat().st_mtime_ns)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return importlib.import_module(place)


@cache
def executed(path: Path, changed: int) -> ModuleType:
    """The module of a file, run once for all that is named in it: a denoiser and its conditioner
    may share what is made there."""
    name = f"own_{path.stem}"  # a file may be called as one of our modules is
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, str(path.parent))  # the file may import its neighbours
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
