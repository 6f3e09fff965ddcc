"""Composition in a feature space z = A x, sections 3.2 and D, for invertible linear maps A.

    p is an F-CPC under A  if  A # p  is a CPC (Definition 4)
    its score in z is then an LCS (Corollary 1)

    N_t[p] --A^t--> N_t[A#p] --s_A--> N_{t-1}[A#p] --(A^{t-1})^{-1}--> N_{t-1}[p] --> ...
                                                                          sampling, section D

Noise is added in pixels. (A # p)^t = A # (p^t) only for orthogonal A, and the distance between the
two does not decrease with noise as Claim 2 says: it is 0 at t = 0."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.sample import Levels, walk
from composcope.errors import InputError
from composcope.theory import composition as cpc
from composcope.theory.composition import NOTHING, Asked, Composition, Conditional, local_score
from composcope.theory.mixture import Mixture, Vectors, normal


@dataclass(frozen=True, eq=False)
class FeatureComposition:
    """An F-CPC: a CPC in z = A x, seen in pixels x."""

    features: Composition  # of A # p
    A: Float[Tensor, "n n"]

    @property
    def n(self) -> int:
        return self.features.n

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return self.features.blocks

    def given(self, J: Asked) -> Mixture:
        """p(x | c_J), in pixels."""
        return self.features.given(J).pushforward(torch.linalg.inv(self.A))


def pixel_score(p: FeatureComposition, x: Vectors, sigma: float, J: Asked) -> Vectors:
    """The F-LCS brought back to pixels, A^T s_A(A x): the score of p^t if A commutes with noise."""
    return local_score(p.features, x @ p.A.T, sigma, J) @ p.A


def orders_of_noising(p: Mixture, A: Float[Tensor, "n n"], t: float) -> tuple[Mixture, Mixture]:
    """N_t[A # p] and A # N_t[p], whose KL Claim 2 is about."""
    return p.pushforward(A).noised(t), p.noised(t).pushforward(A)


def power(S: Float[Tensor, "n n"], exponent: float) -> Float[Tensor, "n n"]:
    """Of a symmetric positive matrix."""
    values, vectors = torch.linalg.eigh(S)
    return vectors * values**exponent @ vectors.T


def one_gaussian(p: Mixture) -> tuple[Float[Tensor, " n"], Float[Tensor, "n n"]]:
    """Its mean and covariance S."""
    if (count := len(p.weights)) > 1:
        raise InputError(f"A^t has a closed form for one Gaussian, not for a mixture of {count}")
    return p.means[0], p.covs[0]


def time_map(p: Mixture, A: Float[Tensor, "n n"], t: float) -> Float[Tensor, "n n"]:
    """A^t of section D, A^t # N_t[p] = N_t[A # p], for p = N(mu, S): x to A mu + A^t (x - mu).

        A^t = (A S A^T + t^2)^{1/2} R (S + t^2)^{-1/2}
        R = (A S A^T)^{-1/2} A S^{1/2}, which is orthogonal

    Ours: the definition leaves a rotation open, and R is the one with A^0 = A. It depends on p
    through S; for orthogonal A it is A at every t; as t grows it becomes R, whatever A stretches.
    """
    _, S = one_gaussian(p)
    eye = torch.eye(len(S), dtype=S.dtype)
    pushed = A @ S @ A.T
    R = power(pushed, -0.5) @ A @ power(S, 0.5)
    return power(pushed + t**2 * eye, 0.5) @ R @ power(S + t**2 * eye, -0.5)


def gaussian_flow(p: Mixture, x: Vectors, t: float, lower: float) -> Vectors:
    """Of p = N(mu, S), from x of N_t[p]: mu + (S + lower^2)^{1/2} (S + t^2)^{-1/2} (x - mu)."""
    mu, S = one_gaussian(p)
    eye = torch.eye(len(S), dtype=S.dtype)
    return mu + (x - mu) @ (power(S + lower**2 * eye, 0.5) @ power(S + t**2 * eye, -0.5)).T


def sample_through_features(
    p: FeatureComposition, x: Vectors, sigmas: Levels, J: Asked, fixed: bool = False
) -> Vectors:
    """From x of N_t[p(. | c_J)], t = sigmas[0], down the sigmas, each step in z with the F-LCS.

    `fixed` takes A itself at every noise level, which section D says is wrong unless A is
    orthogonal."""
    law = p.given(J)
    mu, _ = one_gaussian(law)
    score = cpc.ScoreDenoiser(lambda z, sigma, _: local_score(p.features, z, sigma, J))
    for t, lower in pairwise(sigmas):
        into, out = (p.A if fixed else time_map(law, p.A, float(level)) for level in (t, lower))
        z = p.A @ mu + (x - mu) @ into.T
        *_, last = walk(score, z[:, None, None] / t, None, torch.stack([t, lower]))
        x = mu + (last.x[:, 0, 0] - p.A @ mu) @ torch.linalg.inv(out).T
    return x


def mean_cosines(p: Conditional) -> Float[Tensor, "conditions conditions"]:
    """Equation 3: cosines between mu_i - mu_b; a CPC has zeros off the diagonal; others may."""
    mu_b = p.given(NOTHING).mean
    ways = torch.stack([p.given(frozenset({j})).mean - mu_b for j in range(len(p.blocks))])
    unit = torch.nn.functional.normalize(ways, dim=1)
    return unit @ unit.T


@dataclass(frozen=True)
class Correlated:
    """Conditions move one pixel each, all stay correlated: equation 3 holds, and it is no CPC."""

    rho: float
    n: int = 3

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return tuple((i,) for i in range(self.n))

    def given(self, J: Asked) -> Mixture:
        mean = torch.tensor([float(i in J) for i in range(self.n)], dtype=torch.float64)
        cov = torch.full((self.n, self.n), self.rho, dtype=torch.float64).fill_diagonal_(1)
        return normal(mean, cov)
