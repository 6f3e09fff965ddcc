"""numba as this room uses it: machine code that is kept on disk and runs without the interpreter's lock."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from numba import njit

ROOM = Path(__file__).parent
KERNELS = ("scene", "chance", "geometry", "shading", "render", "rules", "compiled")  # they call and inline each other


def compiled(function: Callable) -> Callable:
    """Compile a function when it is first called. The tests' type checks wrap it; what is compiled is the function."""
    return njit(cache=True, nogil=True, error_model="numpy")(inspect.unwrap(function))


def parallel(function: Callable) -> Callable:
    """The same with its `prange` loops spread over the cores."""
    return njit(cache=True, nogil=True, error_model="numpy", parallel=True)(inspect.unwrap(function))


def forget_old() -> None:
    """Drop machine code older than any kernel: numba looks at the file of a function, but not of its callees."""
    changed = max(file.stat().st_mtime for file in ROOM.glob("*.py") if file.stem in KERNELS)
    for index in (ROOM / "__pycache__").glob("*.nbi"):
        with suppress(OSError):  # another process was faster, or the package is not ours to write
            if index.stat().st_mtime < changed:
                index.unlink()


forget_old()
