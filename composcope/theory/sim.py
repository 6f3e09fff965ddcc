"""Structured Identity Mapping (Yang et al. 2025): the identity, learned on clusters of one concept.

    x ~ N(mu_p e_p, diag(sigma^2)), p = 1..s        loss 1/2 E |f(x) - x|^2
    asked at  xhat = sum_p mu_p e_p

For linear f = W x only the second moment A = diag(a), a_p = sigma_p^2 + mu_p^2 / s, matters: the
population is as good as the d points sqrt(a_k) e_k. Everything here is full-batch and carries many
initialisations (seeds) at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

Vector = Float[Tensor, " d"]
Points = Float[Tensor, "points d"]
Matrices = Float[Tensor, "*seeds d h"]
Outputs = Float[Tensor, "records seeds d"]  # f(xhat) along the training, from several starts


@dataclass(frozen=True)
class Concepts:
    """s = len(mu) clusters in d dimensions, of deviations sigma along s axes, 0 elsewhere."""

    mu: tuple[float, ...]
    sigma: tuple[float, ...]
    d: int

    def padded(self, values: Sequence[float]) -> Vector:
        return torch.tensor([*values, *[0.0] * (self.d - len(values))], dtype=torch.float64)

    @property
    def a(self) -> Vector:
        """The diagonal of the uncentred second moment."""
        s, pairs = len(self.mu), zip(self.mu, self.sigma, strict=True)
        return self.padded([sigma**2 + mu**2 / s for mu, sigma in pairs])

    @property
    def xhat(self) -> Vector:
        """All concepts at once: never seen in training."""
        return self.padded(self.mu)

    def population(self) -> Float[Tensor, "d d"]:
        """Points whose summed loss is the expected loss of a linear map."""
        return self.a.sqrt().diag()

    def samples(self, count: int, seed: int) -> Points:
        """`count` points a cluster: their mean loss is what a nonlinear map minimises."""
        noise = torch.randn(len(self.mu), count, self.d, generator=rng(seed), dtype=torch.float64)
        centres = self.xhat.diag()[: len(self.mu), None]
        return (centres + self.padded(self.sigma) * noise).flatten(0, 1)


# The rules of `swing_by` were settled while looking at starts drawn from 0 and 1, the step of
# `dynamics` while looking at those from 2; what is reported are fresh ones.
STARTS = 3


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_layer(W0: Matrices, a: Vector, z: Vector, t: float) -> Vector:
    """f(W(t); z) under gradient flow (Theorem 4.1):

        f_k = (1 - e^{-a_k t}) z_k + sum_i e^{-a_i t} w_ki(0) z_i

    The theorem sums over i <= s, for z without components beyond s; a_i = 0 there, so nothing is
    lost by all i."""
    decay = (-a * t).exp()
    return (1 - decay) * z + W0 @ (decay * z)


def growth_suppression_noise(W: Matrices, a: Vector) -> tuple[Matrices, Matrices, Matrices]:
    """G, S, N of equation 4.3, entry by entry: dw_ij/dt = G - S - N."""
    i, j = a[:, None], a[None, :]
    own = W.diagonal(dim1=-2, dim2=-1)
    off = 1 - torch.eye(len(a), dtype=a.dtype)
    G = W * (i + j)
    S = 0.5 * W * (own[..., :, None] * (3 * i + j) + off * own[..., None, :] * (3 * j + i))
    outer = torch.einsum("...ki,...kj,kij->...kij", W, W, (i + j)[None] + 2 * a[:, None, None])
    same = torch.eye(len(a), dtype=torch.bool)
    N = 0.5 * outer.masked_fill(same[:, :, None] | same[:, None, :], 0).sum(-3)
    return G, S, N


def velocity(W: Matrices, a: Vector) -> Matrices:
    """The same in matrices: V(W) = WA + AW - (A W^2 + W^2 A + 2 W A W) / 2."""
    A, square = a.diag(), W @ W
    return W @ A + A @ W - 0.5 * (A @ square + square @ A + 2 * W @ A @ W)


def recursion(W0: Matrices, a: Vector, eta: float, steps: int, every: int = 1) -> Tensor:
    """W <- W + eta V(W), as published, [records seeds d d]; W need not stay U U^T."""
    W, seen = W0, [W0]
    for step in range(1, steps + 1):
        W = W + eta * velocity(W, a)
        if step % every == 0:
            seen.append(W)
    return torch.stack(seen)


def tied_descent(U0: Matrices, a: Vector, eta: float, steps: int, every: int = 1) -> Tensor:
    """Gradient descent on U of half the loss of f = U U^T x, [records seeds d d].

    On the loss itself W = U U^T moves by 2 V(W): the same way at twice the speed. The half keeps
    equation 4.3's clock."""
    U, seen, eye = U0, [U0 @ U0.mT], torch.eye(len(a), dtype=a.dtype)
    for step in range(1, steps + 1):
        slope = (U @ U.mT - eye) * a
        U = U - 0.5 * eta * (slope + slope.mT) @ U
        if step % every == 0:
            seen.append(U @ U.mT)
    return torch.stack(seen)


@dataclass(frozen=True)
class Network:
    """An untied network of `depth` layers without biases, from Gaussian weights."""

    depth: int
    width: int
    relu: bool = False
    positive: bool = False  # |.| of the same weights: all signals begin in the positive quadrant
    scale: float = 1.0  # of the usual 1/sqrt(fan in)

    def layers(self, d: int, seeds: int) -> list[Float[Tensor, "seeds out in"]]:
        sizes = [d, *[self.width] * (self.depth - 1), d]
        source = rng(STARTS)
        layers = []
        for i, o in pairwise(sizes):
            w = torch.randn(seeds, o, i, generator=source, dtype=torch.float64)
            layers.append(self.scale * (w.abs() if self.positive else w) / math.sqrt(i))
        return layers

    def __call__(self, layers: list[Tensor], x: Points) -> Float[Tensor, "seeds points d"]:
        h = x.expand(len(layers[0]), *x.shape)
        for index, layer in enumerate(layers):
            h = h @ layer.mT
            h = h.relu() if self.relu and index < self.depth - 1 else h
        return h


def descend(
    net: Network, concepts: Concepts, x: Points, eta: float, steps: int, seeds: int, mean: bool
) -> Outputs:
    """f(xhat) along full-batch gradient descent on 1/2 |f(x) - x|^2, its mean or sum over x."""
    layers = [layer.requires_grad_() for layer in net.layers(concepts.d, seeds)]
    seen = []
    for _ in range(steps):
        with torch.no_grad():
            seen.append(net(layers, concepts.xhat[None])[:, 0])
        # Seeds do not share weights.
        loss = 0.5 * (net(layers, x) - x).square().sum() / (len(x) if mean else 1)
        with torch.no_grad():
            for layer, slope in zip(layers, torch.autograd.grad(loss, layers), strict=True):
                layer -= eta * slope
    return torch.stack(seen)


def ood_loss(outputs: Outputs, concepts: Concepts) -> Float[Tensor, "records seeds"]:
    """1/2 |f(xhat) - xhat|^2."""
    return 0.5 * (outputs - concepts.xhat).square().sum(-1)


def rise(loss: Float[Tensor, "records seeds"]) -> Float[Tensor, " seeds"]:
    """How far the loss climbs above its lowest value so far, as a share of its first value."""
    return (loss - loss.cummin(0).values).amax(0) / loss[0]


def learned_at(outputs: Outputs, concepts: Concepts) -> Float[Tensor, "seeds s"]:
    """The record from which on f(xhat)_k is within a fifth of mu_k; their number if none."""
    s = len(concepts.mu)
    # Also where a run has diverged.
    far = ~((outputs[..., :s] / concepts.xhat[:s] - 1).abs() <= 0.2)
    index = torch.arange(1, len(outputs) + 1, dtype=torch.float64)[:, None, None]
    return (far * index).amax(0)
