"""One file for each claim or question: it trains, measures and returns rows. Here rooms meet."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import tyro

from composcope.errors import sentences
from composcope.report.marks import name, paper_of, paper_words, with_interval
from composcope.report.material import k_max_beside_paper
from composcope.results import Row
from composcope.study.effects import Side


def command(main: Callable[..., Any]) -> None:
    """An experiment from the command line; bad input and a stop are one sentence, as elsewhere."""
    # for the whole process: numbers close to nothing slow a processor five times
    torch.set_flush_denormal(True)
    with sentences():
        tyro.cli(main)


def tell_k_max(rows: Sequence[Row], sides: Iterable[Side]) -> None:
    """K_max of each, as the report compares it with the paper's."""
    for side in sides:
        ours = with_interval(k_max_beside_paper(rows, side))
        paper = paper_words(paper_of(side))
        print(f"{name(side):24} K_max {ours}" + (f"   the paper: {paper}" if paper else ""))
