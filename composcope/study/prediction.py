"""Does what is measured early in a training predict how far the model composes in the end?

    pairs     = (early conditional locality or loss, final places filled), one a run
    spearman  = rank correlation over runs;   error = of runs held out one by one, in places filled

Functions of rows: the experiment (experiments/predict.py) and the report call the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from composcope.results import Estimate, Row, only, resampled, row, spearman, where, with_value
from composcope.results.estimate import estimate
from composcope.study.table import TOLERANCE

K = 6  # places asked for: twice as many as most trainings had
FEWEST = 4  # runs, below which nothing is said
LOCALITY = "conditional locality"
LOSS = "training loss"
NOTHING = "nothing"  # the mean of the other runs


@dataclass(frozen=True)
class Point:
    """One run: what was known early, and what came of it."""

    run: str
    early: float
    final: float


def points(rows: Sequence[Row], known: str, sigma: float | None = None) -> list[Point]:
    """Runs with an early measurement of what is `known` and a final one of places filled of six."""
    what = {LOCALITY: "locality/conditional_locality", LOSS: "training/loss"}[known]
    plain = where(rows, intervention=None)
    early = where(plain, what=what, snapshot="early")
    if sigma is not None:
        near = where(plain, what="locality/near_share", snapshot="early")
        early = [one for one in near if one.sigma is not None and np.isclose(one.sigma, sigma)]
    reached = {"what": "length/found", "snapshot": "final", "asked": "paper", "K": K}
    final = where(plain, tolerance=[TOLERANCE, None], **reached)
    found = []
    for run in dict.fromkeys(one.run for one in early):
        first, last = (only(with_value(some), run=run) for some in (early, final))
        if first and last:
            found.append(Point(str(run), first.estimate.value, last.estimate.value))
    return found


def early_levels(rows: Sequence[Row]) -> list[float]:
    """The noise levels at which early locality was measured, highest first."""
    early = where(rows, what="locality/near_share", snapshot="early", intervention=None)
    return sorted({round(float(one.sigma), 6) for one in early if one.sigma}, reverse=True)


def prediction(rows: Sequence[Row]) -> list[Row]:
    """Rank correlations, over all noise and by noise level, and errors of held-out runs."""
    made: list[Row] = []
    for known in (LOCALITY, LOSS):
        found = points(rows, known)
        if len(found) < FEWEST:
            continue
        early, final = arrays(found)
        sign = -1 if known == LOSS else 1  # a low loss should go with many places
        made.append(row("predict/spearman", spearman(sign * early, final), concept=known, K=K))
        made.append(row("predict/error", held_out(early, final), concept=known, K=K))
        if known == LOCALITY:
            flat = np.zeros_like(early)
            made.append(row("predict/error", held_out(flat, final), concept=NOTHING, K=K))
    for sigma in early_levels(rows):
        found = points(rows, LOCALITY, sigma)
        if len(found) >= FEWEST:
            value = spearman(*arrays(found))
            made.append(row("predict/spearman", value, concept=LOCALITY, K=K, sigma=sigma))
    return made


def arrays(found: Sequence[Point]) -> tuple[Float[np.ndarray, " run"], Float[np.ndarray, " run"]]:
    return np.array([one.early for one in found]), np.array([one.final for one in found])


def held_out(early: Float[np.ndarray, " run"], final: Float[np.ndarray, " run"]) -> Estimate:
    """Each run predicted by the straight line through all others; the root of the mean square of
    what is missed, with an interval over runs."""
    missed = np.array([missed_by(early, final, k) for k in range(len(early))])
    return estimate(np.sqrt(resampled(missed**2)), len(missed))


def missed_by(early: Float[np.ndarray, " run"], final: Float[np.ndarray, " run"], k: int) -> float:
    """How far the line through all runs but the k-th is from it; without spread, their mean."""
    others = np.arange(len(early)) != k
    x, y = early[others], final[others]
    spread = ((x - x.mean()) ** 2).sum()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / spread if spread > 0 else 0.0
    return float(y.mean() + slope * (early[k] - x.mean()) - final[k])
