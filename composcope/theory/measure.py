"""The measurements of this room: every claim of the theory, and of SIM, as rows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from composcope.errors import InputError
from composcope.results import Row
from composcope.theory.claim import Toy
from composcope.theory.claims import THEORY
from composcope.theory.swing_by import SIM


def theory(only: Sequence[str] = (), keep: Path | None = None) -> list[Row]:
    """The paper's claims on distributions small enough to compute; `keep`: a folder for the curves
    of the figures."""
    return rows_of("theory", THEORY, only, keep)


def sim(only: Sequence[str] = (), keep: Path | None = None) -> list[Row]:
    """The claims of Structured Identity Mapping, as frequencies over seeds."""
    return rows_of("sim", SIM, only, keep)


def rows_of(
    room: str, toys: Mapping[str, Callable[[], Toy]], only: Sequence[str], keep: Path | None
) -> list[Row]:
    rows = []
    for name in toys_named(toys, only):
        toy = toys[name]()
        if keep and toy.curves:
            toy.save(keep / f"{name}.npz")
        rows += [claim.row(room) for claim in toy.claims]
    return rows


def toys_named(toys: Mapping[str, Callable[[], Toy]], only: Sequence[str]) -> Sequence[str]:
    """All of them if none is named."""
    if unknown := set(only) - set(toys):
        raise InputError(
            f"there is no toy {', '.join(sorted(unknown))}; there are {', '.join(toys)}"
        )
    return only or tuple(toys)
