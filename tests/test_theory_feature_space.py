"""F-CPC and F-LCS; which maps commute with noise; the heuristic of equation 3."""

import math

import pytest
import torch

from composcope.diffusion.sample import noise_levels
from composcope.errors import InputError
from composcope.theory.claims import gaussian_composition
from composcope.theory.composition import NOTHING, all_subsets, local_score, random_composition
from composcope.theory.feature_space import (
    FeatureComposition,
    gaussian_flow,
    mean_cosines,
    orders_of_noising,
    pixel_score,
    sample_through_features,
    time_map,
)
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
            torch.testing.assert_close(
                local_score(p.features, X, 0.4, J), pushed.score(X, 0.4), atol=1e-9, rtol=0
            )


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
    assert kl_gaussian(*orders_of_noising(gaussian([1.0] * 7, 1.0), TURN, 1.0)) == pytest.approx(
        0, abs=1e-12
    )


def test_equation_3_is_necessary_and_not_sufficient():
    apart = ~torch.eye(3, dtype=torch.bool)
    assert mean_cosines(random_composition(5))[apart].abs().max() < 1e-12
    assert mean_cosines(FeatureComposition(random_composition(5), RANDOM))[apart].abs().max() > 0.05
    assert mean_cosines(Coupled(0.0))[apart].abs().max() < 1e-12


@pytest.mark.parametrize("t", [0.0, 0.3, 5.0])
def test_the_time_map_takes_the_noised_law_to_the_noised_law_of_features(t):
    """A^t # N_t[p] = N_t[A # p]; A^0 = A; A^t = A for orthogonal A; for one pixel and A(x) = 2x a
    closed form."""
    p = FeatureComposition(gaussian_composition(), RANDOM).given(frozenset({0}))
    noised_first, features_first = (
        p.noised(t).pushforward(time_map(p, RANDOM, t)),
        p.pushforward(RANDOM).noised(t),
    )
    torch.testing.assert_close(noised_first.covs, features_first.covs, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(time_map(p, RANDOM, 0.0), RANDOM, atol=1e-8, rtol=0)
    turned = FeatureComposition(gaussian_composition(), TURN).given(frozenset({0}))
    torch.testing.assert_close(time_map(turned, TURN, t), TURN, atol=1e-9, rtol=0)
    double = torch.tensor([[2.0]]).double()
    assert time_map(gaussian([1.0], 1.0), double, t).item() == pytest.approx(
        math.sqrt((4 + t**2) / (1 + t**2))
    )


def test_sampling_through_features_is_the_flow_of_pixels_and_a_fixed_map_is_not():
    p, J = FeatureComposition(gaussian_composition(), RANDOM), frozenset({0, 2})
    x = p.given(J).sample(10, seed=0, sigma=10.0)
    exact = gaussian_flow(p.given(J), x, 10.0, 0.0)
    gaps = []
    for steps in (32, 64):
        levels = noise_levels(steps, sigma_max=10.0).double()
        gaps.append((sample_through_features(p, x, levels, J) - exact).abs().max().item())
    # Heun's method: the error falls as the square of the step.
    assert gaps[1] < gaps[0] / 3 and gaps[1] < 0.02
    assert (sample_through_features(p, x, levels, J, fixed=True) - exact).abs().max() > 0.1
    turned = FeatureComposition(gaussian_composition(), TURN)
    x = turned.given(J).sample(10, seed=0, sigma=10.0)
    both = [sample_through_features(turned, x, levels, J, fixed) for fixed in (False, True)]
    torch.testing.assert_close(*both, atol=1e-8, rtol=0)


def test_the_time_map_has_a_closed_form_for_one_gaussian_only():
    with pytest.raises(InputError, match="mixture of"):
        time_map(random_composition(5).given(NOTHING), RANDOM, 1.0)
