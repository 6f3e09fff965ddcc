"""One file for each claim or question: it trains, measures and returns rows. Here rooms meet."""

from collections.abc import Callable
from typing import Any

import torch
import tyro

from composcope.errors import sentences


def command(main: Callable[..., Any]) -> None:
    """An experiment from the command line; bad input and a stop are one sentence, as elsewhere."""
    # for the whole process: numbers close to nothing slow a processor five times
    torch.set_flush_denormal(True)
    with sentences():
        tyro.cli(main)
