"""Compare what an image shows with what was asked of it: every object is at an asked place, or
extra.

    asked = found + missing,   drawn = found + extra,   merged <= missing

Merged are asked places whose object has merged with a neighbour's."""

import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from composcope.errors import InputError
from composcope.evaluation.detect import Found
from composcope.scenes.parts import SumOfParts


@dataclass(frozen=True)
class Outcome:
    """How one image did. `found` objects meet a condition: are where, or what, one was asked."""

    asked: int
    found: int
    extra: int
    merged: int = 0
    met: tuple[bool, ...] = field(default=(), compare=False)  # for each condition, if it is there

    @property
    def missing(self) -> int:
        return self.asked - self.found

    @property
    def drawn(self) -> int:
        return self.found + self.extra


def match(
    conditioner: SumOfParts, asked: Sequence, found: Sequence[Found], tolerance: float
) -> Outcome:
    """Judge an image by its condition set: places by distance, other conditions by their counts."""
    if conditioner.has_places:
        return match_places(asked, found, tolerance)
    try:
        drawn = [conditioner.read(thing, (thing.x, thing.y)) for thing in found]
    except AttributeError as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{Path(at.filename).name}, line {at.lineno}: AttributeError: {error}; the detector "
            "finds place, color, shape and size of objects: if conditions are of something else, "
            "say `countable = False` in their class"
        ) from None
    return match_counts(asked, drawn)


def match_places(asked: Sequence, found: Sequence[Found], tolerance: float) -> Outcome:
    """Most pairs first, then the shortest (Hungarian); a pair is at most `tolerance` apart along
    each axis.

    Along each axis (Chebyshev): a model told only the cell may put its object anywhere in it, and
    that always counts."""
    places = np.reshape([(f.x, f.y) for f in found], (-1, 2))
    apart = np.reshape(asked, (-1, 1, 2)) - places
    near = np.abs(apart).max(-1) <= tolerance + 1e-9
    # More than all allowed pairs together, so that none of them is given up.
    too_far = 10.0 * (1 + len(asked))
    rows, columns = linear_sum_assignment(np.where(near, np.linalg.norm(apart, axis=-1), too_far))
    paired = near[rows, columns]
    missing = np.setdiff1d(np.arange(len(asked)), rows[paired])
    matched = int(paired.sum())
    merged = int(near[missing].any(1).sum())
    met = tuple(bool(i not in missing) for i in range(len(asked)))
    return Outcome(len(asked), matched, len(found) - matched, merged, met)


def match_counts(asked: Sequence, drawn: Sequence) -> Outcome:
    """Conditions without places say how many of each, not where: objects beyond a condition's count
    are extra."""
    left = Counter(drawn)
    met = []
    for condition in asked:
        met.append(left[condition] > 0)
        left[condition] -= 1
    return Outcome(len(asked), sum(met), len(drawn) - sum(met), met=tuple(met))
