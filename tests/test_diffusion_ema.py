"""Averages against the weighted sum they stand for, and their profiles against numerical
integrals."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from composcope.diffusion.ema import (
    PowerEMA,
    Profile,
    coefficients,
    gamma_of,
    profile_overlap,
    reconstruct,
)

STEPS = 300


def shares(gamma: float, t: int) -> np.ndarray:
    """What the weights after updates 1 .. t count for: the integral of p over each update."""
    edges = (np.arange(t + 1) / t) ** (gamma + 1)
    return np.diff(edges)


def walk() -> torch.Tensor:
    """A trajectory of 5 weights: a random walk around a slow drift."""
    steps = torch.randn(STEPS, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (0.05 * steps).cumsum(0) + torch.linspace(0, 3, STEPS, dtype=torch.float64)[
        :, None
    ].sqrt()


def density(profile: Profile, tau: float) -> float:
    return (profile.gamma + 1) * tau**profile.gamma / profile.t ** (profile.gamma + 1)


@pytest.mark.parametrize(("sigma_rel", "known"), [(0.05, 16.97), (0.10, 6.94)])
def test_the_exponent_gives_the_width_asked_for(sigma_rel, known):
    gamma = gamma_of(sigma_rel)
    assert gamma == pytest.approx(known, abs=0.01)  # the two values the EDM2 paper prints
    p = Profile(1.0, gamma)
    mean = quad(lambda tau: tau * density(p, tau), 0, 1)[0]
    assert quad(lambda tau: (tau - mean) ** 2 * density(p, tau), 0, 1)[0] ** 0.5 == pytest.approx(
        sigma_rel
    )


@pytest.mark.parametrize("sigma_rel", [0.05, 0.1, 0.25])
def test_the_running_average_is_the_weighted_sum_of_the_trajectory(sigma_rel):
    weights, ema = walk(), PowerEMA({"w": walk()[0]}, sigma_rel)
    for t in range(1, STEPS + 1):
        ema.update({"w": weights[t - 1]}, t)
        if t in (1, 2, 50, STEPS):
            expected = torch.from_numpy(shares(ema.gamma, t)) @ weights[:t]
            torch.testing.assert_close(ema.average["w"], expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"), [((1.0, 7.0), (1.0, 17.0)), ((0.4, 7.0), (1.0, 3.0)), ((2.0, 17.0), (0.5, 7.0))]
)
def test_overlaps_are_the_integrals_of_products(a, b):
    a, b = Profile(*a), Profile(*b)
    expected = quad(lambda tau: density(a, tau) * density(b, tau), 0, min(a.t, b.t))[0]
    assert profile_overlap(a, b) == pytest.approx(expected)


def kept_averages() -> list:
    weights, kept = walk(), []
    for sigma_rel in (0.05, 0.10):
        gamma = gamma_of(sigma_rel)
        for t in range(20, STEPS + 1, 20):
            kept.append(
                (Profile(t, gamma), {"w": torch.from_numpy(shares(gamma, t)) @ weights[:t]})
            )
    return kept


@pytest.mark.parametrize("sigma_rel", [0.03, 0.07, 0.13, 0.2])
def test_any_width_can_be_made_afterwards(sigma_rel):
    kept, gamma = kept_averages(), gamma_of(sigma_rel)
    truth = torch.from_numpy(shares(gamma, STEPS)) @ walk()
    made = reconstruct(kept, Profile(STEPS, gamma))["w"].double()
    nearest = min(
        (weights["w"] for profile, weights in kept if profile.t == STEPS),
        key=lambda w: (w - truth).norm(),
    )
    assert (made - truth).norm() < 0.1 * (nearest - truth).norm()


def test_an_average_that_was_kept_comes_back_as_it_is():
    kept = kept_averages()
    share = coefficients([profile for profile, _ in kept], kept[-1][0])
    np.testing.assert_allclose(share, np.eye(len(kept))[-1], atol=1e-6)
