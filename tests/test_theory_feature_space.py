"""F-CPC and F-LCS; which maps commute with noise; the heuristic of equation 3."""

import math

import pytest
import torch

from composcope.theory.composition import NOTHING, all_subsets, local_score, random_composition
from composcope.theory.feature_space import FeatureComposition, cosines, orders_of_noising, pixel_score
from composcope.theory.mixture import gaussian, kl_gaussian
from composcope.theory.relaxation import Coupled

RANDOM = torch.randn(7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TURN = torch.linalg.qr(RANDOM)[0]
X = torch.randn(6, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_feature_space_local_score_is_exact():
    for A in (TURN, RANDOM):
        p = FeatureComposition(random_composition(5), A)
        for J in all_subsets(3):
            pushed = p.given(J).pushforward(A)
            torch.testing.assert_close(local_score(p.features, X, 0.4, J), pushed.score(X, 0.4), atol=1e-9, rtol=0)


def test_pixels_and_features_agree_at_all_noise_for_orthogonal_maps_and_at_none_for_others():
    for A, sigma, exact in ((TURN, 0.4, True), (RANDOM, 0.0, True), (RANDOM, 0.4, False)):
        p = FeatureComposition(random_composition(5), A)
        gap = (pixel_score(p, X, sigma, NOTHING) - p.given(NOTHING).score(X, sigma)).abs().max()
        assert gap < 1e-8 if exact else gap > 0.1


def test_claim_2_fails_for_doubling():
    double, p = torch.tensor([[2.0]]).double(), gaussian([0.0], 1.0)
    for t, known in ((0, 0), (0.5, 0.006), (1, 0.048), (2, 0.158), (5, 0.278), (50, 0.318)):
        ratio = (4 + t**2) / (4 + 4 * t**2)
        value = kl_gaussian(*orders_of_noising(p, double, t))
        assert value == pytest.approx((ratio - 1 - math.log(ratio)) / 2, abs=1e-12)
        assert value == pytest.approx(known, abs=5e-4)
    assert kl_gaussian(*orders_of_noising(gaussian([1.0] * 7, 1.0), TURN, 1.0)) == pytest.approx(0, abs=1e-12)


def test_equation_3_is_necessary_and_not_sufficient():
    apart = ~torch.eye(3, dtype=torch.bool)
    assert cosines(random_composition(5))[apart].abs().max() < 1e-12
    assert cosines(FeatureComposition(random_composition(5), RANDOM))[apart].abs().max() > 0.05
    assert cosines(Coupled(0.0))[apart].abs().max() < 1e-12
