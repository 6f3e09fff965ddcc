"""Conditional projective composition (CPC) and the local conditional score (LCS), section 3.

    p(x | c_J) = p(x_{M_J^c} | nothing) prod_{j in J} p(x_{M_j} | c_j)    Definition 2, equation 2
    s(x | c_J)(i) = grad log p^sigma[x_{N_i} | c_{L_i(J)}](i)             Definition 1, equation 1

Lemma 1 says the second is exactly the score of the first. Its proof silently uses that p(. |
nothing) factorises over M_b, M_1, M_2, ..; Definition 2 does not ask for that: `Composition` allows
any p(. | nothing), and the lemma can fail."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Sigmas, X
from composcope.errors import InputError
from composcope.theory.mixture import (
    Mixture,
    Noise,
    Pixels,
    Vectors,
    blend,
    gaussian,
    independent,
    mixture,
    normal,
)

Asked = frozenset[int]  # J, the indices of the active conditions
NOTHING: Asked = frozenset()


@runtime_checkable
class Conditional(Protocol):
    """A distribution over n pixels for every condition set, and the blocks of its conditions."""

    @property
    def n(self) -> int: ...

    @property
    def blocks(self) -> Sequence[Pixels]: ...  # M_j

    def given(self, J: Asked) -> Mixture: ...  # p(x | c_J)

    def __hash__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Composition:
    """A CPC exactly as Definition 2 prints it."""

    empty: Mixture  # p(x | nothing), over all pixels
    blocks: tuple[tuple[int, ...], ...]  # M_j
    asked: tuple[Mixture, ...]  # p(x_{M_j} | c_j)

    @property
    def n(self) -> int:
        return self.empty.n

    def given(self, J: Asked) -> Mixture:
        """Equation 2."""
        rest = outside_blocks(self.n, [self.blocks[j] for j in J])
        active = [(self.blocks[j], self.asked[j]) for j in J]
        return independent([(rest, self.empty.marginal(rest)), *active])


def outside_blocks(n: int, blocks: Sequence[Pixels]) -> Pixels:
    taken = set(chain.from_iterable(blocks))
    return [i for i in range(n) if i not in taken]


def all_subsets(count: int) -> list[Asked]:
    return [frozenset(J) for size in range(count + 1) for J in combinations(range(count), size)]


def subsets(p: Conditional, J: Asked) -> Iterator[tuple[Pixels, Asked]]:
    """(N_i, L_i(J)) of Lemma 1, once for each block that shares them; background M_b last."""
    for j, block in enumerate(p.blocks):
        yield block, frozenset({j}) & J
    yield outside_blocks(p.n, p.blocks), NOTHING


@lru_cache(maxsize=4096)
def local_parts(p: Conditional, J: Asked) -> tuple[tuple[Pixels, Mixture], ...]:
    """p(x_N | c_L) for every (N, L): all that the LCS ever looks at."""
    return tuple((N, p.given(L).marginal(N)) for N, L in subsets(p, J))


def local_score(p: Conditional, x: Vectors, sigma: Noise, J: Asked) -> Vectors:
    """The LCS of Definition 1 with the subsets of Lemma 1."""
    score = torch.empty_like(x)
    for N, marginal in local_parts(p, J):
        score[:, list(N)] = marginal.score(x[:, list(N)], sigma)
    return score


def induced(p: Conditional, J: Asked) -> Mixture:
    """Whose score the LCS is: the product of the marginals it reads, C*_J[p] of section C."""
    return independent(local_parts(p, J))


def line_integral(p: Conditional, x: Vectors, sigma: float, J: Asked) -> Float[Tensor, " batch"]:
    """The LCS integrated from 0 straight to x: log phat(x) - log phat(0) if it is a gradient."""
    at, weight = map(torch.from_numpy, np.polynomial.legendre.leggauss(200))
    points = ((at[:, None, None] + 1) / 2 * x).flatten(0, 1)
    return weight / 2 @ (local_score(p, points, sigma, J).unflatten(0, (len(at), -1)) * x).sum(-1)


def projective_score(
    parts: Sequence[Mixture], background: Mixture, x: Vectors, sigma: Noise
) -> Vectors:
    """Explicit composition, sum_i s_i - (k - 1) s_b (Bradley et al. 2025, Definition 5.1)."""
    away = torch.stack([part.score(x, sigma) for part in parts]).sum(0)
    return away - (len(parts) - 1) * background.score(x, sigma)


@dataclass(frozen=True)
class ScoreDenoiser:
    """score(x, sigma, J) as a Denoiser; the nonzero entries of a row of cond are its J."""

    score: Callable[[Tensor, Tensor, Asked], Tensor]

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        flat = x.flatten(1).double()
        denoised, sets = torch.empty_like(flat), [NOTHING] * len(x)
        if cond is not None:
            sets = [frozenset(row.nonzero().flatten().tolist()) for row in cond]
        for J in set(sets):
            at = [i for i, of in enumerate(sets) if of == J]
            level = sigma[at].double()
            denoised[at] = flat[at] + level[:, None] ** 2 * self.score(flat[at], level, J)
        return denoised.view_as(x).to(x.dtype)


def exact(p: Conditional) -> ScoreDenoiser:
    given = lru_cache(p.given)
    return ScoreDenoiser(lambda x, sigma, J: given(J).score(x, sigma))


def local(p: Conditional) -> ScoreDenoiser:
    return ScoreDenoiser(lambda x, sigma, J: local_score(p, x, sigma, J))


def learn_from_pairs(p: Conditional) -> Composition:
    """The CPC read off p(. | c_J) with |J| = 2 alone: what a local learner has seen."""
    size = len(p.blocks)
    if size < 3:
        raise InputError(f"pairs out of {size} blocks leave none that is not asked; take 3 or more")

    def seen(pixels: Pixels, first: int) -> Mixture:
        """Of these pixels, when the conditions `first` and the one after it are asked."""
        return p.given(frozenset({first % size, (first + 1) % size})).marginal(pixels)

    asked = tuple(seen(block, j) for j, block in enumerate(p.blocks))
    away = [(block, seen(block, j + 1)) for j, block in enumerate(p.blocks)]
    rest = outside_blocks(p.n, p.blocks)
    empty = independent([(rest, seen(rest, 0)), *away])
    return Composition(empty, tuple(map(tuple, p.blocks)), asked)


def object_images(side: int, width: float = 0.1) -> Composition:
    """Images of side x side places of 2 x 2 pixels: objects are +-1, an empty place is 0."""
    pixels = torch.arange(4 * side**2).view(side, 2, side, 2).transpose(1, 2).reshape(-1, 4)
    shown = mixture([[1.0] * 4, [-1.0] * 4], width)
    blocks = tuple(map(tuple, pixels.tolist()))
    return Composition(gaussian([0.0] * (4 * side**2), width), blocks, (shown,) * len(blocks))


def random_composition(seed: int, factorised: bool = True, count: int = 3) -> Composition:
    """Random blocks of seven pixels, mixtures, background; Lemma 1 silently uses `factorised`."""
    pixels = 7
    generator = torch.Generator().manual_seed(seed)
    free = torch.randint(-1, count, (pixels - count,), generator=generator)  # -1: background
    order = torch.randperm(pixels, generator=generator)
    block_of = torch.cat([torch.arange(count), free])[order].tolist()
    blocks = tuple(tuple(i for i in range(pixels) if block_of[i] == j) for j in range(count))
    empty = _random_mixture(pixels, generator)
    if factorised:
        parts = [*blocks, outside_blocks(pixels, blocks)]
        empty = independent([(part, _random_mixture(len(part), generator)) for part in parts])
    asked = tuple(_random_mixture(len(block), generator) for block in blocks)
    return Composition(empty, blocks, asked)


def _random_mixture(n: int, generator: torch.Generator) -> Mixture:
    def one() -> Mixture:
        root = torch.randn(n, n, generator=generator, dtype=torch.float64)
        mean = torch.randn(n, generator=generator, dtype=torch.float64)
        return normal(mean, root @ root.T / max(n, 1) + 0.1 * torch.eye(n).double())

    return blend([one(), one()])
