"""Composition in a feature space z = A x, section 3.2 and D of the paper, for invertible linear maps A.

    p is an F-CPC under A  if  A # p  is a CPC (Definition 4); its score in z is then an LCS (Corollary 1).

Noise is added in pixels. (A # p)^t = A # (p^t) only for orthogonal A, and the distance between the two does not
decrease with noise as Claim 2 says: it is 0 at t = 0.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.theory.composition import NOTHING, Asked, Composition, Conditional, local_score
from composcope.theory.mixture import Mixture


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


def pixel_score(p: FeatureComposition, x: Float[Tensor, "batch n"], sigma: float, J: Asked) -> Float[Tensor, "batch n"]:
    """The F-LCS at z = A x brought back to pixels, A^T s_A (chain rule): the score of p^t if A commutes with noise."""
    return local_score(p.features, x @ p.A.T, sigma, J) @ p.A


def orders_of_noising(p: Mixture, A: Float[Tensor, "n n"], t: float) -> tuple[Mixture, Mixture]:
    """N_t[A # p] and A # N_t[p], whose KL Claim 2 is about."""
    return p.pushforward(A).noised(t), p.noised(t).pushforward(A)


def cosines(p: Conditional) -> Float[Tensor, "conditions conditions"]:
    """Equation 3 as measured: cosines between mu_i - mu_b; a CPC has zeros off the diagonal, and so may others."""
    mu_b = p.given(NOTHING).mean
    ways = torch.stack([p.given(frozenset({j})).mean - mu_b for j in range(len(p.blocks))])
    unit = torch.nn.functional.normalize(ways, dim=1)
    return unit @ unit.T


@dataclass(frozen=True)
class Correlated:
    """Conditions that move one pixel each, while all pixels stay correlated: equation 3 holds, and it is no CPC."""

    rho: float
    n: int = 3

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return tuple((i,) for i in range(self.n))

    def given(self, J: Asked) -> Mixture:
        mean = torch.tensor([[float(i in J) for i in range(self.n)]], dtype=torch.float64)
        cov = self.rho * torch.ones(1, self.n, self.n).double() + (1 - self.rho) * torch.eye(self.n).double()
        return Mixture(torch.ones(1).double(), mean, cov)
