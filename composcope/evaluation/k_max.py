"""The K up to which a model draws what is asked: the paper's rule and a stricter one of ours, with an interval.

K_max = max {K : success at every tested 1 <= K' <= K}                                     (the paper, section E.2)

Two shares of the images of each K decide: `right` (K objects where they were asked for, no others; others are allowed
where training labels leave objects out) and `near` (at least K - 2 of those asked for).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import bdtr, betaincinv

from composcope.evaluation.matching import Outcome

Shares = Float[np.ndarray, " times"]
Rule = Callable[[int, Shares, Shares, int], Bool[np.ndarray, " times"]]  # (K, right, near, images) -> success


@dataclass(frozen=True)
class KMax:
    value: int
    low: int
    high: int


def is_right(outcome: Outcome, extras: bool) -> bool:
    return outcome.missing == 0 and (extras or outcome.extra == 0)


def is_near(outcome: Outcome) -> bool:
    return outcome.missing <= 2


@dataclass(frozen=True)
class Error:
    """How often the detector misjudges a drawer that draws exactly what is asked: wrong ones by K, out of `scenes`."""

    scenes: int
    right: Sequence[int]
    near: Sequence[int]

    @staticmethod
    def of(about: Mapping[str, Any], asked: str) -> "Error":
        """As measured when the detector was made, at `asked` places ("paper", "random") or for "colors"."""
        return Error(**about["errors"][asked])

    def tolerance(self, K: int, images: int, trained: int) -> float:
        """The share of `images` that a perfect drawer may fail at K, as not `right` up to `trained` objects, as not
        `near` beyond: more would, at the detector's error rate (its upper 95 % bound, Clopper and Pearson 1934), happen
        once in a hundred evaluations. Never half of the images or more, so that a blank drawer fails however few."""
        wrong = (self.right if K <= trained else self.near)[K]  # noqa: SIM300 (as the paper writes it)
        rate = betaincinv(wrong + 1, self.scenes - wrong, 0.95) if wrong < self.scenes else 1.0
        most = int((bdtr(np.arange(images + 1), images, rate) >= 0.99).argmax())
        return min(most / images, 0.5 * (1 - 1 / images))


def paper_rule(trained: int, error: Error) -> Rule:
    """Section E.2: "success" is "for 1 <= K <= N [...] generating exactly K objects, and (rather generously) for K > N
    [...] at least K - 2 and K objects more than 25% of the time, with objects appearing in approximately correct
    locations". N is `trained`. "Exactly" and "at least" are read up to the detector's own error."""

    def succeeds(K: int, right: Shares, near: Shares, images: int) -> Bool[np.ndarray, " times"]:
        needed = 1 - error.tolerance(K, images, trained) - 1e-9
        if K <= trained:  # noqa: SIM300
            return right >= needed
        return (near >= needed) & (right > 0.25)

    return succeeds


def strict_rule(K: int, right: Shares, near: Shares, images: int) -> Bool[np.ndarray, " times"]:
    """Ours, the same for every K: right in at least half of the images, and surely in more than a quarter."""
    return (right >= 0.5) & (wilson(right, images)[0] > 0.25)


def wilson(share: Float[np.ndarray, "..."] | float, n: int) -> tuple[Any, Any]:
    """The 95 % score interval of a share of n (Wilson 1927)."""
    z = 1.959964
    centre, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def largest(success: Mapping[int, Bool[np.ndarray, " times"]]) -> np.ndarray:
    """The largest tested K up to which all succeed, for each of the `times`; 0 where K = 1 already fails."""
    Ks = sorted(success)
    held = np.cumprod([success[K] for K in Ks], axis=0)
    return np.max(held * np.array(Ks)[:, None], axis=0)


def k_max(outcomes: Mapping[int, Sequence[Outcome]], rule: Rule, extras: bool = False, times: int = 2000) -> KMax:
    """K_max, and its 95 % interval over resampled images (bootstrap by percentiles, within each K; Efron 1979)."""
    rng = np.random.default_rng(0)
    success, resampled = {}, {}
    for K, of_K in outcomes.items():
        if K > 0:
            right, near = np.array([(is_right(o, extras), is_near(o)) for o in of_K], float).T
            n = len(of_K)
            chosen = rng.integers(n, size=(times, n))
            success[K] = rule(K, right.mean(keepdims=True), near.mean(keepdims=True), n)
            resampled[K] = rule(K, right[chosen].mean(1), near[chosen].mean(1), n)
    if not success:
        return KMax(0, 0, 0)
    low, high = np.quantile(largest(resampled), (0.025, 0.975), method="inverted_cdf")
    return KMax(int(largest(success)[0]), int(low), int(high))


def usual(counts: Sequence[int]) -> str:
    """The range that nine images of ten are in, as the paper writes it: "0-2", or "0" when it is one number."""
    low, high = np.quantile(counts, (0.05, 0.95), method="inverted_cdf")
    return f"{low}" if low == high else f"{low}-{high}"
