"""Averages of the weights over training, of a width relative to its length; others afterwards.

    average(t) = integral of p(tau) weights(tau)
    p(tau) = (gamma + 1) tau^gamma / t^(gamma + 1)    (EDM2, eq. 121)

Averages kept at a few moments span a space of profiles; the one nearest to a wanted profile gives
the weights of the averages to combine (EDM2, section C.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

Weights = Mapping[str, Tensor]


def gamma_of(sigma_rel: float) -> float:
    """The exponent of a profile of deviation sigma_rel, in lengths of the training (EDM2, eq. 123).

    sigma_rel^2 = (gamma + 1) / ((gamma + 2)^2 (gamma + 3)) falls with gamma, from 1/12 (a plain
    mean) at gamma = 0."""

    def excess(gamma: float) -> float:
        return (gamma + 1) / ((gamma + 2) ** 2 * (gamma + 3)) - sigma_rel**2

    return brentq(excess, 0, 1e6, xtol=1e-12)


class PowerEMA:
    """The running average at one width; the sum over steps is exact, so `t` counts updates."""

    def __init__(self, weights: Weights, sigma_rel: float):
        self.gamma = gamma_of(sigma_rel)
        self.average = {name: weight.detach().clone() for name, weight in weights.items()}

    @torch.no_grad()
    def update(self, weights: Weights, t: int) -> None:
        """After the t-th update, t = 1, 2, ..."""
        beta = (1 - 1 / t) ** (self.gamma + 1)  # EDM2, eq. 127
        new = [weights[name] for name in self.average]
        torch._foreach_lerp_(list(self.average.values()), new, 1 - beta)


@dataclass(frozen=True)
class Profile:
    """p(tau) of an average of exponent gamma at time t."""

    t: float
    gamma: float


def profile_overlap(a: Profile, b: Profile) -> float:
    """The integral of p_a p_b, in closed form (EDM2, eq. 151): the shorter one ends it."""
    if a.t > b.t:
        a, b = b, a
    coefficient = (a.gamma + 1) * (b.gamma + 1) / (a.gamma + b.gamma + 1)
    return coefficient * (a.t / b.t) ** b.gamma / b.t


def coefficients(kept: Sequence[Profile], wanted: Profile) -> np.ndarray:
    """How much of each kept average makes the wanted one: least squares (EDM2, algorithm 3)."""
    A = np.array([[profile_overlap(a, b) for b in kept] for a in kept])
    b = np.array([profile_overlap(a, wanted) for a in kept])
    return np.linalg.lstsq(A, b, rcond=None)[0]


def reconstruct(kept: Sequence[tuple[Profile, Weights]], wanted: Profile) -> dict[str, Tensor]:
    """The weights averaged with the wanted profile, from averages of other moments and widths."""
    profiles, averages = zip(*kept, strict=True)
    shares = coefficients(profiles, wanted)

    def combined(name: str) -> Tensor:
        terms = zip(shares, averages, strict=True)
        return sum(share * weights[name].double() for share, weights in terms).float()

    return {name: combined(name) for name in averages[0]}
