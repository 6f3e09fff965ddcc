"""Definition 3's suprema against brute force, Lemma 2's bound, Claim 1's derivative."""

import math

import pytest
import torch

from composcope.theory.composition import all_subsets, induced
from composcope.theory.mixture import Mixture, gaussian, kl, kl_gaussian, kl_line, mixture
from composcope.theory.relaxation import (
    Coupled,
    errors,
    gaussian_conditional_kl,
    kl_slope,
    lemma_2_bound,
)


def conditional(p: Mixture, pixel: int, x: torch.Tensor, sigma: float) -> Mixture:
    """p^sigma(x_pixel | all others): by responsibilities, as components are round. `x` misses the
    pixel."""
    others = [i for i in range(p.n) if i != pixel]
    gap = ((x - p.means[:, others]) ** 2).sum(-1) / (p.covs[:, 0, 0] + sigma**2)
    return Mixture((p.weights.log() - gap / 2).softmax(0), p.means[:, [pixel]], p.covs[:, :1, :1])


@pytest.mark.parametrize("sigma", [0.0, 0.8])
def test_the_suprema_of_definition_3_are_approached_and_never_passed(sigma):
    p = Coupled(0.5)
    found = [[0.0, 0.0] for _ in range(p.n)]
    places = torch.tensor([-40.0, 0.5, 40.0], dtype=torch.float64)
    for J in all_subsets(3):
        for pixel in range(4):
            L = frozenset({pixel - 1}) & J
            marginal = p.given(L).marginal([pixel])
            for x in torch.cartesian_prod(places, places, places):
                value = kl_line(conditional(p.given(J), pixel, x, sigma), marginal, sigma)
                found[pixel][len(L)] = max(found[pixel][len(L)], value)
    predicted = errors(p, sigma)
    assert found[0][0] == pytest.approx(predicted[0][0], rel=1e-6)
    for ours, theirs in zip(found[1:], predicted[1:], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)


def test_no_coupling_no_error_and_lemma_2_bounds_the_divergence():
    assert all(max(pair) < 1e-12 for pair in errors(Coupled(0.0), 0.3))
    for epsilon, sigma in ((0.2, 0.0), (0.5, 0.7)):
        p = Coupled(epsilon)
        of = errors(p, sigma)
        for J in all_subsets(3):
            value, error = kl(p.given(J), induced(p, J), sigma)
            assert 3 * error < value + 3 * error <= lemma_2_bound(of, J)


def test_claim_1_is_the_derivative():
    p, q = mixture([[-1.0], [1.0]], 0.4, [1, 3]), mixture([[0.0], [2.0]], 0.6)
    for t in (0.3, 1.0, 4.0):
        step = 1e-4 * t
        difference = (kl_line(p, q, t + step) - kl_line(p, q, t - step)) / (2 * step)
        assert kl_slope(p, q, t) == pytest.approx(difference, rel=1e-6)


def test_correlated_gaussians_have_no_finite_error():
    for y in (0.0, 1.0, 10.0):
        conditional = gaussian([0.6 * y], math.sqrt(1 - 0.36))
        assert gaussian_conditional_kl(0.6, y) == pytest.approx(
            kl_gaussian(conditional, gaussian([0.0], 1.0)), abs=1e-12
        )
    assert gaussian_conditional_kl(0.1, 1e4) > 1e5
