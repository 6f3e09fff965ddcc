"""Every property of a mixture against scipy, autograd or a closed form."""

import math

import pytest
import torch
from scipy.stats import multivariate_normal

from composcope.theory.composition import random_composition
from composcope.theory.mixture import (
    blend,
    gaussian,
    independent,
    kl,
    kl_gaussian,
    kl_line,
    mixture,
)

MIX = random_composition(
    3, factorised=False
).empty  # two components over 7 pixels, full covariances
X = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SIGMA = torch.tensor([0.0, 0.1, 0.7, 2.0, 80.0], dtype=torch.float64)


def test_density_is_scipys_with_a_noise_level_for_each_row():
    for x, sigma, ours in zip(X, SIGMA, MIX.log_density(X, SIGMA), strict=True):
        covs = [cov + sigma**2 * torch.eye(7).double() for cov in MIX.covs]
        terms = [
            multivariate_normal(mean, cov).pdf(x) for mean, cov in zip(MIX.means, covs, strict=True)
        ]
        assert ours.item() == pytest.approx(math.log(sum(terms) / 2), abs=1e-10)


def test_score_is_the_gradient():
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(MIX.log_density(x, SIGMA).sum(), x)
    torch.testing.assert_close(MIX.score(X, SIGMA), gradient, atol=1e-12, rtol=0)


def test_the_score_leads_to_the_posterior_mean_of_a_brute_force_average():
    """E[x0 | x] = x + sigma^2 score (Tweedie)."""
    p = mixture([[-1.0], [0.5], [2.0]], 0.3, weights=[1, 2, 3])
    x0 = torch.linspace(-5, 6, 20001, dtype=torch.float64)
    weight = (p.log_density(x0[:, None]) - (0.4 - x0) ** 2 / (2 * 0.8**2)).softmax(0)
    score = p.score(torch.tensor([[0.4]], dtype=torch.float64), 0.8).item()
    assert 0.4 + 0.8**2 * score == pytest.approx((weight @ x0).item(), abs=1e-9)


def test_samples_have_the_moments_and_marginals_commute_with_them():
    x = MIX.sample(200_000, seed=1, sigma=0.5)
    apart = MIX.means - MIX.mean
    cov = (MIX.covs + apart[:, :, None] * apart[:, None]).mean(0) + 0.25 * torch.eye(7)
    assert (x.mean(0) - MIX.mean).abs().max() < 5 * cov.diagonal().max().sqrt() / math.sqrt(200_000)
    torch.testing.assert_close(x.T.cov(), cov, atol=0.05, rtol=0)
    part = MIX.marginal([4, 1])
    torch.testing.assert_close(part.means, MIX.means[:, [4, 1]])
    assert part.covs[0, 0, 1] == MIX.covs[0, 4, 1]


def test_pushforward_changes_the_density_by_the_jacobian():
    A = torch.randn(7, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    pushed = MIX.pushforward(A).log_density(X @ A.T)
    torch.testing.assert_close(
        pushed, MIX.log_density(X) - torch.linalg.slogdet(A)[1], atol=1e-9, rtol=0
    )
    torch.testing.assert_close(
        MIX.noised(0.7).log_density(X), MIX.log_density(X, 0.7), atol=1e-12, rtol=0
    )


def test_independent_density_is_the_product_whatever_the_order_of_pixels():
    one, two = (
        mixture([[0.0], [1.0]], 0.2),
        mixture([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], 0.4, [1, 2, 5]),
    )
    joint = independent([([2, 0], two), ([], gaussian([], 1.0)), ([1], one)])
    x = X[:, :3]
    expected = one.log_density(x[:, [1]]) + two.log_density(x[:, [2, 0]])
    torch.testing.assert_close(joint.log_density(x), expected, atol=1e-12, rtol=0)


def test_three_ways_to_a_divergence_agree():
    p, q = gaussian([0.3], 1.0), gaussian([-0.2], 1.4)
    closed = math.log(1.4) + (1 + 0.25) / (2 * 1.96) - 0.5
    assert kl_gaussian(p, q) == pytest.approx(closed, abs=1e-12)
    assert kl_line(p, q) == pytest.approx(closed, abs=1e-10)
    value, error = kl(p, q)
    assert abs(value - closed) < 4 * error and error < 0.005
    for far, wide in (
        (8.0, 1.0),
        (0.0, 300.0),
    ):  # where the mass of q is not among the samples of p
        other = gaussian([far], wide)
        value, error = kl(gaussian([0.0], 1.0), other)
        assert abs(value - kl_gaussian(gaussian([0.0], 1.0), other)) < 4 * error
        assert kl_line(gaussian([0.0], 1.0), other) == pytest.approx(
            kl_gaussian(gaussian([0.0], 1.0), other), abs=1e-9
        )
    bumps = blend([p, gaussian([3.0], 0.2)])
    value, error = kl(bumps, q, sigma=0.3)
    assert abs(value - kl_line(bumps, q, sigma=0.3)) < 4 * error
