"""What is left of Lemma 1 when blocks influence each other a little: section C of the paper.

    KL(p(. | c_J) || phat(. | c_J)) <= sum_{j in J} eps_j + sum_{j not in J} eps~_j + eps_b  Lemma 2

The toy: a chain of one-pixel blocks (pixel 0 is the background), each with a hidden sign h that its
neighbours pull at with strength epsilon, and that an active neighbour pushes up (a shadow). At
epsilon = 0 it is a CPC. For correlated Gaussians the suprema of Definition 3 are infinite; signs,
whose influence is bounded, make the smallest real example."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.theory.composition import Asked, all_subsets, subsets
from composcope.theory.mixture import Mixture, kl_line, line, mixture

WIDTH, LIFT = 0.5, 2.0  # of each bump; of the mean of an active block


@dataclass(frozen=True)
class Coupled:
    """p(x | c_J) = sum_h p(h | J) prod_i N(x_i; h_i + LIFT [i in J], WIDTH^2); epsilon couples."""

    epsilon: float
    n: int = 4

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return tuple((i,) for i in range(1, self.n))

    @property
    def signs(self) -> Float[Tensor, "states n"]:
        return torch.tensor(list(product([-1.0, 1.0], repeat=self.n)), dtype=torch.float64)

    def chances(self, J: Asked) -> Float[Tensor, " states"]:
        """p(h | J): neighbours agree, an active block pushes its neighbours up, both by epsilon."""
        h = self.signs
        pushed = [j + 1 + side for j in J for side in (-1, 1) if 0 <= j + 1 + side < self.n]
        return (self.epsilon * ((h[:, 1:] * h[:, :-1]).sum(1) + h[:, pushed].sum(1))).softmax(0)

    def given(self, J: Asked) -> Mixture:
        lift = torch.tensor([LIFT * (i - 1 in J) for i in range(self.n)], dtype=torch.float64)
        return mixture((self.signs + lift).tolist(), WIDTH, self.chances(J).tolist())

    def revealed(self, pixel: int, J: Asked) -> list[Mixture]:
        """p(x_pixel | c_J, other signs), for those that make this one's + least and most likely.

        A far-away x_{M^c} reveals its signs, noise or not, and every p(x_pixel | x_{M^c}) lies
        between these two. KL is convex in either argument, so its supremum over x_{M^c} is its
        value at one of them."""
        up, chances, centre = self.signs[:, pixel] > 0, self.chances(J), LIFT * (pixel - 1 in J)
        # Both in the same order of the others' signs.
        plus = chances[up] / (chances[up] + chances[~up])
        bumps, shares = [[centre - 1], [centre + 1]], (plus.min().item(), plus.max().item())
        return [mixture(bumps, WIDTH, [1 - share, share]) for share in shares]


@lru_cache(maxsize=64)
def errors(p: Coupled, sigma: float, as_in_lemma_3: bool = False) -> list[tuple[float, float]]:
    """(eps~_i, eps_i) of Definition 3 for every pixel i, at noise sigma; eps_b is in both.

    Definition 3 takes KL(conditional || marginal); Lemma 3 speaks of KL(marginal || conditional).
    """
    worst = [[0.0, 0.0] for _ in range(p.n)]
    for J in all_subsets(len(p.blocks)):
        for (pixel,), L in subsets(p, J):
            marginal = p.given(L).marginal([pixel])
            pairs = [(q, marginal)[:: -1 if as_in_lemma_3 else 1] for q in p.revealed(pixel, J)]
            largest = max(kl_line(first, second, sigma) for first, second in pairs)
            worst[pixel][len(L)] = max(worst[pixel][len(L)], largest)
    return [(worst[0][0], worst[0][0]), *((inactive, active) for inactive, active in worst[1:])]


def lemma_2_bound(of: list[tuple[float, float]], J: Asked) -> float:
    """The right-hand side of Lemma 2."""
    return sum(active if i - 1 in J else inactive for i, (inactive, active) in enumerate(of))


def kl_slope(p: Mixture, q: Mixture, sigma: float) -> float:
    """Claim 1: d/dt KL(N_t[q] || N_t[r]) = -t E (grad log N_t[q]/N_t[r])^2 at t = sigma."""
    x, step = line(p, q, sigma)
    gap = (p.score(x, sigma) - q.score(x, sigma)).squeeze(1)
    return -sigma * (p.log_density(x, sigma).exp() * gap**2).sum().item() * step


def gaussian_conditional_kl(rho: float, y: float) -> float:
    """KL(p(x | y) || p(x)) of unit Gaussians of correlation rho: quadratic in y, unbounded."""
    variance = 1 - rho**2
    return 0.5 * (variance + (rho * y) ** 2 - 1 - math.log(variance))
