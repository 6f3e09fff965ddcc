"""The K up to which a model draws what is asked: the paper's rule and a stricter one of ours, with
an interval.

    K_max = max {K : success at every tested 1 <= K' <= K}    (the paper, section E.2)

Two shares of the images of each K decide: `right` (K objects where they were asked for, no others;
others are allowed where training labels leave objects out) and `near` (at least K - 2 of those
asked for). How many others are allowed there the paper does not say; it reports them, as "+(0-2)".
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count, takewhile

import numpy as np
from jaxtyping import Bool, Float

from composcope.evaluation.detect import Misjudged
from composcope.evaluation.matching import Outcome
from composcope.results.estimate import ENDS, RESAMPLES, Estimate, resampled, wilson

PAPER_IMAGES = 8  # counted for each K by eye, section E.2
Shares = Float[np.ndarray, " times"]
# (K, right, near, images) -> success.
Rule = Callable[[int, Shares, Shares, int], Bool[np.ndarray, " times"]]


def is_right(outcome: Outcome, extras: float) -> bool:
    """All that was asked for, and no more than `extras` objects beside it."""
    return outcome.missing == 0 and outcome.extra <= extras


def is_near(outcome: Outcome) -> bool:
    return outcome.missing <= 2


def paper_rule(trained: int, error: Misjudged | None) -> Rule:
    """Section E.2: "success" is "for 1 <= K <= N [...] generating exactly K objects, and (rather
    generously) for K > N [...] at least K - 2 and K objects more than 25% of the time, with objects
    appearing in approximately correct locations". N is `trained`. "Exactly" and "at least" are read
    up to the detector's own error, where it is known."""

    def succeeds(K: int, right: Shares, near: Shares, images: int) -> Bool[np.ndarray, " times"]:
        needed = 1 - (error.share(K, images, trained) if error else 0) - 1e-9
        if K <= trained:  # noqa: SIM300
            return right >= needed
        return (near >= needed) & (right > 0.25)

    return succeeds


def strict_rule(K: int, right: Shares, near: Shares, images: int) -> Bool[np.ndarray, " times"]:
    """Ours, for every K: right in at least half of the images, surely in more than a quarter."""
    return (right >= 0.5) & (wilson(right, images)[0] > 0.25)


def from_one_on(outcomes: Mapping[int, Sequence[Outcome]]) -> dict[int, Sequence[Outcome]]:
    """Those of the K that follow on each other from 1 on: beyond a K that was not asked for there
    is no K_max."""
    return {K: outcomes[K] for K in takewhile(outcomes.__contains__, count(1))}


def largest(success: Mapping[int, Bool[np.ndarray, " times"]]) -> np.ndarray:
    """The largest tested K up to which all succeed, for each of the `times`; 0 if K = 1 fails."""
    Ks = sorted(success)
    held = np.cumprod([success[K] for K in Ks], axis=0)
    return np.max(held * np.array(Ks)[:, None], axis=0)


def k_max(outcomes: Mapping[int, Sequence[Outcome]], rule: Rule, extras: float = 0) -> Estimate:
    """K_max of outcomes `from_one_on`, and its 95 % interval over images resampled within each K;
    its ends are values of K_max themselves."""
    success = {}
    for K, judged in shares_of(outcomes, extras).items():
        n = len(judged)
        # Whole numbers of images again: a share of exactly 1/4 must not become a little more.
        shares = np.round(resampled(judged, seed=K) * n) / n
        held = rule(K, shares[:, 0], shares[:, 1], n)
        success[K] = np.broadcast_to(held, (1 + RESAMPLES,)) if len(held) == 1 else held
    values = largest(success)
    low, high = np.quantile(values[1:], ENDS, method="inverted_cdf")
    return Estimate(int(values[0]), int(low), int(high), min(map(len, outcomes.values())))


def k_max_on_eight(
    outcomes: Mapping[int, Sequence[Outcome]], rule: Rule, extras: float = 0
) -> Estimate:
    """K_max as the paper counted it, on eight images a K: its median over many draws of eight, and
    the middle 95 % of them. The more images, the less a rule about every one of them allows."""
    success = {}
    for K, judged in shares_of(outcomes, extras).items():
        draws = np.random.default_rng(K).integers(len(judged), size=(RESAMPLES, PAPER_IMAGES))
        shares = judged[draws].mean(axis=1)
        success[K] = rule(K, shares[:, 0], shares[:, 1], PAPER_IMAGES)
    ends = (ENDS[0], 0.5, ENDS[1])
    low, middle, high = np.quantile(largest(success), ends, method="inverted_cdf")
    return Estimate(int(middle), int(low), int(high), min(map(len, outcomes.values())))


def shares_of(
    outcomes: Mapping[int, Sequence[Outcome]], extras: float
) -> dict[int, Float[np.ndarray, "image right_near"]]:
    """By K from 1 on, for each image whether it is right and whether it is near."""
    return {
        K: np.array([(is_right(one, extras), is_near(one)) for one in some], float)
        for K, some in outcomes.items()
        if K > 0
    }
