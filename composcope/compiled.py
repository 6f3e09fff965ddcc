"""numba as the renderer uses it: machine code kept on disk, which runs without Python's lock."""

import atexit
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numba
from numba import njit

PACKAGE = Path(__file__).parent
FOLDERS = (PACKAGE, PACKAGE / "scenes")
# They call and inline each other.
KERNELS = ("scene", "chance", "geometry", "shading", "render", "rules", "compiled")


def compiled(function: Callable, parallel: bool = False) -> Callable:
    """Compile a function when it is first called, without what the tests' type checks wrap it in.

    parallel: its `prange` loops are spread over the cores."""
    compiler = njit(cache=True, nogil=True, error_model="numpy", parallel=parallel)
    return compiler(inspect.unwrap(function))


parallel = partial(compiled, parallel=True)


def keep_somewhere() -> None:
    """Where neither the package nor the user's folder can be written to: a temporary one."""
    if numba.config.CACHE_DIR:
        return
    try:
        njit(cache=True)(keep_somewhere)
    except RuntimeError:  # numba found no place
        numba.config.CACHE_DIR = str(temporary())


def temporary() -> Path:
    """A folder of this user alone (what is in it will be run), if possible the same each time."""
    shared = Path(tempfile.gettempdir()) / f"composcope-{os.getuid()}"
    with suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        about = shared.lstat()
        if (
            shared.is_dir()
            and not shared.is_symlink()
            and about.st_uid == os.getuid()
            and not about.st_mode & 0o077
        ):
            return shared
    own = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def forget_old() -> None:
    """Drop machine code older than any kernel: numba does not look at the files of callees."""
    files = [file for folder in FOLDERS for file in folder.glob("*.py") if file.stem in KERNELS]
    changed = max(file.stat().st_mtime for file in files)
    indices = [file for folder in FOLDERS for file in (folder / "__pycache__").glob("*.nbi")]
    for folder in FOLDERS if numba.config.CACHE_DIR else ():
        indices += Path(numba.config.CACHE_DIR).glob(f"{folder.name}_*/*.nbi")
    for index in indices:
        with suppress(OSError):  # another process was faster, or the package is not ours to write
            if index.stat().st_mtime < changed:
                index.unlink()


keep_somewhere()
forget_old()
