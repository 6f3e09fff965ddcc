"""numba as this room uses it: machine code that is kept on disk and runs without the interpreter's lock."""

import inspect
from collections.abc import Callable

from numba import njit


def compiled(function: Callable) -> Callable:
    """Compile a function when it is first called. The tests' type checks wrap it; what is compiled is the function."""
    return njit(cache=True, nogil=True, error_model="numpy")(inspect.unwrap(function))


def parallel(function: Callable) -> Callable:
    """The same with its `prange` loops spread over the cores."""
    return njit(cache=True, nogil=True, error_model="numpy", parallel=True)(inspect.unwrap(function))
