"""Gaussian mixtures: all that a diffusion model approximates is known of them exactly.

    p(x) = sum_k w_k N(x; mean_k, cov_k)
    p^sigma = p * N(0, sigma^2 I):  cov_k becomes cov_k + sigma^2 I

Covariances are kept by their eigenvectors, so every row of a batch may have a noise level of its
own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

Pixels = Sequence[int]  # indices into x
Noise = Float[Tensor, " batch"] | float
Vectors = Float[Tensor, "batch n"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture over vectors of n pixels (n may be 0), in float64."""

    weights: Float[Tensor, " comp"]
    means: Float[Tensor, "comp n"]
    covs: Float[Tensor, "comp n n"]

    @property
    def n(self) -> int:
        return self.means.shape[1]

    @cached_property
    def eigen(self) -> tuple[Tensor, Tensor]:
        return torch.linalg.eigh(self.covs)

    @property
    def mean(self) -> Float[Tensor, " n"]:
        return self.weights @ self.means

    def _terms(self, x: Tensor, sigma: Noise) -> tuple[Tensor, Tensor, Tensor]:
        """log w_k N(x; k); x - mean_k in eigen coordinates, and its variances [batch comp n]."""
        values, vectors = self.eigen
        variance = values + torch.as_tensor(sigma, dtype=x.dtype).expand(len(x))[:, None, None] ** 2
        offset = torch.einsum("knd,bkn->bkd", vectors, x[:, None] - self.means)
        exponents = (offset**2 / variance + (2 * math.pi * variance).log()).sum(-1)
        return self.weights.log() - 0.5 * exponents, offset, variance

    def log_density(self, x: Vectors, sigma: Noise = 0.0) -> Float[Tensor, " batch"]:
        return self._terms(x, sigma)[0].logsumexp(-1)

    def score(self, x: Vectors, sigma: Noise = 0.0) -> Vectors:
        """grad log p^sigma."""
        logs, offset, variance = self._terms(x, sigma)
        return -torch.einsum("bk,knd,bkd->bn", logs.softmax(-1), self.eigen[1], offset / variance)

    def sample(self, count: int, seed: int, sigma: float = 0.0) -> Float[Tensor, "count n"]:
        generator = torch.Generator().manual_seed(seed)
        k = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        normal = torch.randn(count, self.n, generator=generator, dtype=self.means.dtype)
        values, vectors = self.eigen
        spread = (values.clamp(min=0) + sigma**2).sqrt()[k] * normal
        return self.means[k] + torch.einsum("bnd,bd->bn", vectors[k], spread)

    def marginal(self, pixels: Pixels) -> "Mixture":
        """Components that only differed elsewhere become one."""
        at = torch.tensor(list(pixels), dtype=torch.long)
        both = torch.cat([self.means[:, at, None], self.covs[:, at][:, :, at]], dim=2)
        kept, which = both[:1], torch.zeros_like(self.weights).long()
        if len(at):
            kept, which = both.unique(dim=0, return_inverse=True)
        weights = torch.zeros(len(kept), dtype=self.weights.dtype).index_add(0, which, self.weights)
        return Mixture(weights, kept[..., 0], kept[..., 1:])

    def pushforward(self, A: Float[Tensor, "n n"]) -> "Mixture":
        """A # p, the distribution of A x."""
        return Mixture(self.weights, self.means @ A.T, A @ self.covs @ A.T)

    def noised(self, sigma: float) -> "Mixture":
        """N_sigma[p], as a mixture of its own."""
        eye = torch.eye(self.n, dtype=self.covs.dtype)
        return Mixture(self.weights, self.means, self.covs + sigma**2 * eye)


def normal(mean: Float[Tensor, " n"], cov: Float[Tensor, "n n"]) -> Mixture:
    """One Gaussian of any shape."""
    return Mixture(torch.ones(1).double(), mean[None], cov[None])


def gaussian(mean: Sequence[float], deviation: float) -> Mixture:
    """A round one."""
    return mixture([mean], deviation)


def mixture(
    means: Sequence[Sequence[float]], deviation: float, weights: Sequence[float] | None = None
) -> Mixture:
    """Round components of one deviation around the means, equally likely if without weights."""
    centres = torch.tensor(means, dtype=torch.float64)
    shares = torch.tensor(weights or [1.0] * len(centres), dtype=torch.float64)
    eye = torch.eye(centres.shape[1], dtype=torch.float64)
    return Mixture(shares / shares.sum(), centres, (deviation**2 * eye).repeat(len(centres), 1, 1))


def blend(parts: Sequence[Mixture]) -> Mixture:
    """The equal mixture of mixtures."""
    weights = torch.cat([part.weights for part in parts]) / len(parts)
    means = torch.cat([part.means for part in parts])
    return Mixture(weights, means, torch.cat([part.covs for part in parts]))


def independent(parts: Sequence[tuple[Pixels, Mixture]]) -> Mixture:
    """The product of mixtures over disjoint sets of pixels that together are 0 .. n-1."""
    n = sum(len(pixels) for pixels, _ in parts)
    whole = normal(torch.zeros(n).double(), torch.zeros(n, n).double())
    for pixels, part in parts:
        at = torch.tensor(list(pixels), dtype=torch.long)
        old, new = len(whole.weights), len(part.weights)
        means, covs = whole.means.repeat_interleave(new, 0), whole.covs.repeat_interleave(new, 0)
        means[:, at] = part.means.repeat(old, 1)
        covs[:, at[:, None], at] = part.covs.repeat(old, 1, 1)
        whole = Mixture(torch.outer(whole.weights, part.weights).flatten(), means, covs)
    return whole


def kl(p: Mixture, q: Mixture, sigma: float = 0.0) -> tuple[float, float]:
    """KL(p^sigma || q^sigma) by Monte Carlo, and its standard error.

    With r = q/p the mean of r - 1 is 0, so r - 1 - log r has the mean of -log r, with far less
    variance when p ~ q and far more when q is much wider: the one with the smaller error is taken.
    Where q lies so far off that its mass is not among the samples, their r - 1 does not average to
    0 and is left out."""
    count = 10_000
    x = p.sample(count, 0, sigma)
    log_r = q.log_density(x, sigma) - p.log_density(x, sigma)
    control = log_r.expm1()
    seen = control.mean().abs() <= 4 * control.std() / math.sqrt(count)
    terms = min(-log_r, control - log_r, key=lambda terms: terms.std().item()) if seen else -log_r
    return terms.mean().item(), (terms.std() / math.sqrt(count)).item()


def kl_gaussian(p: Mixture, q: Mixture) -> float:
    """KL(p || q) of two single Gaussians, in closed form."""
    P, Q, gap = p.covs[0], q.covs[0], q.means[0] - p.means[0]
    solved = torch.linalg.solve(Q, torch.cat([P, gap[:, None]], 1))
    twice = solved[:, :-1].trace() + gap @ solved[:, -1] - p.n + Q.logdet() - P.logdet()
    return 0.5 * twice.item()


def line(p: Mixture, q: Mixture, sigma: float) -> tuple[Float[Tensor, "points 1"], float]:
    """Equally spaced points over twelve deviations around two mixtures of one pixel; their spacing.

    For smooth functions that vanish at both ends the plain sum over these converges faster than any
    power, once the narrowest component is wider than two spacings."""
    widths, centres = (torch.cat([p.covs, q.covs]) + sigma**2).sqrt(), torch.cat([p.means, q.means])
    reach = 12 * widths.max().item()
    low, high = centres.min().item() - reach, centres.max().item() + reach
    points = max(1001, math.ceil(2 * (high - low) / widths.min().item()) + 1)
    x = torch.linspace(low, high, points, dtype=torch.float64)
    return x[:, None], (x[1] - x[0]).item()


def kl_line(p: Mixture, q: Mixture, sigma: float = 0.0) -> float:
    """KL(p^sigma || q^sigma) of mixtures over one pixel, by quadrature."""
    x, step = line(p, q, sigma)
    log_p = p.log_density(x, sigma)
    return (log_p.exp() * (log_p - q.log_density(x, sigma))).sum().item() * step
