"""A measured number and how sure we are of it: one type and one bootstrap for the whole project.

value [low, high]    95 % interval, by percentiles over resampled samples (Efron 1979), or
                     Wilson's for a share
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

RESAMPLES = 1000
ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A number, its 95 % interval (None: a single sample has none), and its samples."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Of its interval; without one, the value itself."""
        low = self.value if self.low is None else self.low
        return low, self.value if self.high is None else self.high

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.value:.2f}{interval}"


def weights(
    n: int, resamples: int = RESAMPLES, seed: int = 0
) -> Float[np.ndarray, "one_and_resamples n"]:
    """Row 0: every sample once; others: as often as drawn. One sample has no others."""
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples if n > 1 else 0)
    return np.concatenate([np.ones((1, n)), draws]) / n


def resampled(
    values: Float[np.ndarray, "sample *rest"], resamples: int = RESAMPLES, seed: int = 0
) -> Float[np.ndarray, "one_and_resamples *rest"]:
    """Means over samples: first of all of them, then of resamples."""
    return np.tensordot(weights(len(values), resamples, seed), values, 1)


def estimate(statistics: Float[np.ndarray, " one_and_resamples"], n: int | None = None) -> Estimate:
    """Of a statistic of each row of `resampled`; resamples without a finite value are left out."""
    first, rest = float(statistics[0]), statistics[1:][np.isfinite(statistics[1:])]
    if not len(rest):
        return Estimate(first, n=n)
    low, high = np.quantile(rest, ENDS)
    return Estimate(first, float(low), float(high), n)


def mean(values: Sequence[float] | np.ndarray) -> Estimate:
    """The mean of samples; of truth values, their share with Wilson's interval."""
    values = np.asarray(values)
    if values.dtype == bool:
        return share(int(values.sum()), len(values))
    return estimate(resampled(values.astype(float)), len(values))


def share(hits: int, n: int) -> Estimate:
    """hits / n with the score interval (Wilson 1927)."""
    low, high = wilson(hits / n, n)
    return Estimate(hits / n, float(low), float(high), n)


def wilson(part: Float[np.ndarray, "..."] | float, n: int) -> tuple[Any, Any]:
    """The 95 % score interval of a share of n (Wilson 1927)."""
    z = 1.959964
    part = np.asarray(part)
    centre = part + z**2 / (2 * n)
    half = z * np.sqrt(part * (1 - part) / n + z**2 / (4 * n**2))
    # Within [0, 1] but for round-off.
    ends = np.clip([centre - half, centre + half], 0, 1 + z**2 / n) / (1 + z**2 / n)
    return ends[0], ends[1]


def spearman(
    a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"], resamples: int = 10_000, seed: int = 0
) -> Estimate:
    """Rank correlation, bootstrapped over pairs; resamples without spread are left out."""
    from scipy.stats import rankdata  # it takes a second to load, and few commands need it

    draws = np.random.default_rng(seed).integers(len(a), size=(resamples, len(a)))
    index = np.concatenate([np.arange(len(a))[None], draws])
    x, y = (rankdata(values[index], axis=1) for values in (a, b))
    x = x - x.mean(1, keepdims=True)
    y = y - y.mean(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return estimate((x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1)), len(a))
