"""Compare what an image shows with what was asked of it: every object is at an asked place, or extra.

asked = found + missing,   drawn = found + extra,   merged <= missing: asked places whose object went into a neighbour
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from composcope.evaluation.detect import Found


@dataclass(frozen=True)
class Outcome:
    """How one image did. `found` objects are where (or of the colour) one was asked for."""

    asked: int
    found: int
    extra: int
    merged: int = 0

    @property
    def missing(self) -> int:
        return self.asked - self.found

    @property
    def drawn(self) -> int:
        return self.found + self.extra


def match(asked: Sequence, found: Sequence[Found], cell: float) -> Outcome:
    """Judge one image by its condition set: locations (u, v) within one grid cell, or colour names by their counts."""
    if len(asked) and isinstance(asked[0], str):
        return match_colors(asked, found)
    return match_places(asked, found, cell)


def match_places(asked: Sequence, found: Sequence[Found], cell: float) -> Outcome:
    """Most pairs first, then the shortest (Hungarian); a pair is at most `cell` apart along each axis.

    Along each axis (Chebyshev): a model told only the cell may put its object anywhere in it, and that always counts.
    """
    places = np.reshape([(f.x, f.y) for f in found], (-1, 2))
    apart = np.reshape(asked, (-1, 1, 2)) - places
    near = np.abs(apart).max(-1) <= cell + 1e-9
    too_far = 10.0 * (1 + len(asked))  # more than all allowed pairs together, so that none of them is given up
    rows, columns = linear_sum_assignment(np.where(near, np.linalg.norm(apart, axis=-1), too_far))
    paired = near[rows, columns]
    missing = np.setdiff1d(np.arange(len(asked)), rows[paired])
    matched = int(paired.sum())
    return Outcome(len(asked), matched, len(found) - matched, merged=int(near[missing].any(1).sum()))


def match_colors(asked: Sequence[str], found: Sequence[Found]) -> Outcome:
    """The colour conditioner says how many of each colour, not where: objects beyond a colour's count are extra."""
    common = (Counter(asked) & Counter(f.color for f in found)).total()
    return Outcome(len(asked), common, len(found) - common)
