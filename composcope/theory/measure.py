"""The measurements of this room: every claim of the theory, and of SIM, as rows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from composcope.errors import InputError
from composcope.files import write_pngs
from composcope.progress import track
from composcope.results import Row, add_rows
from composcope.theory.claims import THEORY
from composcope.theory.swing_by import SIM

# The paper's claims on distributions small enough to compute; those of Structured Identity Mapping.
TOYS = {"theory": THEORY, "sim": SIM}


def measured_toys(
    kind: str, only: Sequence[str], out: Path, draw: Callable[..., Mapping[str, Any]]
) -> list[Row]:
    """The rows of every toy, or of those named, and in a folder beside them its curves and what
    `draw` makes of them: on disk before the next toy begins."""
    toys = TOYS[kind]
    if unknown := ", ".join(sorted(set(only) - set(toys))):
        raise InputError(f"there is no toy {unknown}; there are {', '.join(toys)}")
    torch.set_num_threads(1)  # the matrices are small: threads would only wait for each other
    folder = out.with_suffix("")
    rows = []
    for name in track(only or tuple(toys), kind):
        toy = toys[name]()
        found = [claim.row(kind) for claim in toy.claims]
        if toy.curves:
            toy.save(folder / f"{name}.npz")
        add_rows(out, found)
        write_pngs(folder, draw(kind, name, folder))
        rows += found
    return rows
