"""K_max on drawers whose answer is known, and its parts against closed forms."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from composcope.evaluation.detect import Misjudged
from composcope.evaluation.k_max import k_max, k_max_on_eight, paper_rule, strict_rule
from composcope.evaluation.matching import Outcome
from composcope.results.estimate import Estimate, wilson

NUM = 64


def misjudged(scenes, right, near):
    """As many of so many scenes at every K."""
    wrong = dict.fromkeys(range(13), right), dict.fromkeys(range(13), near)
    return Misjudged("location", "paper", "full", 0.1, scenes, *wrong)


SURE = misjudged(10**6, 0, 0)  # a detector that errs less than once in 300,000


def sure(value):
    return Estimate(value, value, value, NUM)


def evaluate(drawer, trained=3, extras=0, error=SURE, most=12, num=NUM):
    outcomes = {K: [drawer(K, i) for i in range(num)] for K in range(most + 1)}
    paper, strict = paper_rule(trained, error), strict_rule
    return k_max(outcomes, paper, extras), k_max(outcomes, strict, extras)


def test_a_perfect_drawer_reaches_the_largest():
    assert evaluate(lambda K, i: Outcome(K, K, 0)) == (sure(12), sure(12))


def test_one_that_drops_the_third_object():
    paper, strict = evaluate(lambda K, i: Outcome(K, min(K, 2), 0))
    assert (paper, strict) == (sure(2), sure(2))


def test_one_that_always_draws_one():
    paper, strict = evaluate(lambda K, i: Outcome(K, min(K, 1), 0 if K else 1))
    assert (paper, strict) == (sure(1), sure(1))


def test_one_that_adds_extras_fails_unless_labels_left_objects_out():
    adds = lambda K, i: Outcome(K, K, i % 3)  # noqa: E731
    assert evaluate(adds) == (sure(0), sure(0))  # a third of its images is right
    assert evaluate(adds, extras=2) == (sure(12), sure(12))
    many = lambda K, i: Outcome(K, K, 40)  # noqa: E731
    assert evaluate(many, extras=2) == (sure(0), sure(0))  # noise is full of objects


def test_one_that_merges_neighbours_beyond_six():
    """It draws K - 1 in most images: near enough for the paper's rule as long as one in four is
    right, not for ours."""
    merges = lambda K, i: (  # noqa: E731
        Outcome(K, K, 0) if K <= 6 or i % 3 == 0 else Outcome(K, K - 1, 0, merged=1)
    )
    paper, strict = evaluate(merges)
    assert (paper.value, strict.value) == (12, 6)
    assert paper.low <= 12 and strict.high < 12


def test_a_single_gap_ends_it():
    gap = lambda K, i: Outcome(K, 0 if K == 5 else K, 0)  # noqa: E731
    assert [result.value for result in evaluate(gap)] == [4, 4]


@pytest.mark.parametrize("share, value", [(16, 3), (17, 12)])
def test_more_than_a_quarter_beyond_what_was_trained(share, value):
    drawer = lambda K, i: Outcome(K, K if K <= 3 or i < share else K - 2, 0)  # noqa: E731
    assert evaluate(drawer)[0].value == value


def test_at_least_k_minus_2_always():
    once_three_short = lambda K, i: Outcome(K, K - 3 if K == 8 and i == 0 else K, 0)  # noqa: E731
    assert evaluate(once_three_short)[0].value == 7


def test_the_share_is_what_a_perfect_drawer_needs():
    error = misjudged(400, 20, 0)
    share = error.share(3, NUM, trained=3)
    rate = binomtest(20, 400).proportion_ci(0.9).high  # two-sided 90 % = one-sided 95 %
    most = round(share * NUM)
    assert binom.cdf(most, NUM, rate) >= 0.99 > binom.cdf(most - 1, NUM, rate)
    assert error.share(4, NUM, trained=3) < share  # beyond what was trained, `near` decides
    misses = round(share * NUM)
    for wrong, value in ((misses, 3), (misses + 1, 0)):
        drawer = lambda K, i, wrong=wrong: Outcome(K, K - (i < wrong), 0)  # noqa: E731
        assert evaluate(drawer, error=error, most=3)[0].value == value


@pytest.mark.parametrize("images", [1, 2, 8])
def test_a_blank_drawer_fails_however_few_images_and_however_bad_the_detector(images):
    hopeless = misjudged(10, 10, 10)
    assert hopeless.share(1, images, trained=3) < 0.5
    blank = {K: [Outcome(K, 0, 0)] * images for K in (1, 2, 3)}
    assert k_max(blank, paper_rule(3, hopeless)).value == 0


def test_wilson_is_scipys():
    for successes in (0, 3, 32, 64):
        interval = binomtest(successes, 64).proportion_ci(method="wilson")
        assert np.allclose(wilson(successes / 64, 64), (interval.low, interval.high), atol=1e-6)


def test_the_ends_of_a_share_are_shares():
    ends = np.array([wilson(share, n) for n in range(1, 100) for share in (0.0, 1.0)])
    assert ends.min() == 0 and ends.max() == 1


def test_the_interval_holds_the_truth():
    """A drawer whose share of right images falls with K: true K_max (ours) 5, where the share
    crosses one half."""
    held, rng = 0, np.random.default_rng(1)
    share = [1, 0.98, 0.95, 0.9, 0.8, 0.62, 0.38, 0.2, 0.1]
    for _ in range(40):
        outcomes = {
            K: [Outcome(K, K - int(rng.random() > share[K]), 0) for _ in range(NUM)]
            for K in range(9)
        }
        found = k_max(outcomes, strict_rule)
        held += found.low <= 5 <= found.high
    assert held >= 36


def test_a_single_image_for_each_k_has_an_interval_of_its_value():
    outcomes = {1: [Outcome(1, 1, 0)], 2: [Outcome(2, 2, 0)] * 3, 3: [Outcome(3, 0, 0)]}
    found = k_max(outcomes, lambda K, right, near, images: right > 0.5)
    assert found == Estimate(2, 2, 2, 1)


def test_without_a_detector_error_exactly_means_exactly():
    once = {K: [Outcome(K, K - (i == 0), 0) for i in range(NUM)] for K in (1, 2)}
    assert k_max(once, paper_rule(3, None)).value == 0


@pytest.mark.parametrize(("bad", "value"), [(0, 1), (4, 1), (7, 0), (40, 0)])
def test_on_eight_images_a_few_bad_ones_among_many_are_mostly_not_seen(bad, value):
    """Right at K = 1 but for `bad` of 64 images, never at K = 2: all of eight are right with a
    chance of (1 - bad / 64)^8, which is 0.60 with 4 and 0.40 with 7."""
    outcomes = {1: [Outcome(1, int(i >= bad), 0) for i in range(NUM)], 2: [Outcome(2, 0, 0)] * NUM}
    found = k_max_on_eight(outcomes, paper_rule(3, SURE))
    chance = (1 - bad / NUM) ** 8
    ends = int(chance > 0.975), int(chance > 0.025)
    assert found == Estimate(value, *ends, NUM)
    assert k_max(outcomes, paper_rule(3, SURE)).value == (1 if bad == 0 else 0)
