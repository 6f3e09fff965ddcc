"""How weights follow their gradients: Adam for all of them, or Muon for those that are matrices.

    M <- mu M + G,   U = U_G V_G^T of  G + mu M = U_G S V_G^T
    W <- W - rate sqrt(max(rows, columns)) U

Muon's update is the nearest orthogonal matrix to the momentum (Jordan et al. 2024), scaled here to
unit root mean square: so are the weights, and `rate` means what it means for Adam. A convolution's
weights count as one matrix, outputs by all else. Vectors, scalars and linear maps of the embedding
go to Adam: with Muon there the error at high noise was worse (LOG.md)."""

import math
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

Name = Literal["adam", "muon"]

MOMENTUM = 0.95
# Five steps of a quintic that pushes singular values towards 1 (Jordan et al., "Newton-Schulz").
QUINTIC = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonal(matrices: Tensor) -> Tensor:
    """U V^T of each matrix [n, rows, columns] = U S V^T, but for singular values of 0.7 to 1.2.

    The quintic X <- (a + b A + c A^2) X with A = X X^T only ever multiplies from the left by
    polynomials of A, which commute; so all steps are made on the small A, and on X only one."""
    if matrices.shape[1] > matrices.shape[2]:
        return orthogonal(matrices.mT).mT
    a, b, c = QUINTIC
    x = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    gram = x @ x.mT
    one = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    product = one.expand_as(gram)
    for _ in range(STEPS):
        factor = a * one + b * gram + c * gram @ gram
        product = factor @ product
        gram = factor @ gram @ factor
    return product @ x


class Muon:
    """The update of matrices: those of one shape are worked on together."""

    def __init__(self, weights: Mapping[str, Tensor]):
        self.weights = weights
        self.momentum = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.groups: dict[tuple, list[str]] = {}
        for name, weight in weights.items():
            self.groups.setdefault(tuple(weight.flatten(1).shape), []).append(name)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for shape, names in self.groups.items():
            gradients = [self.weights[name].grad for name in names]
            momenta = [self.momentum[name] for name in names]
            torch._foreach_mul_(momenta, MOMENTUM)
            torch._foreach_add_(momenta, gradients)
            ahead = torch._foreach_add(gradients, momenta, alpha=MOMENTUM)  # Nesterov's look ahead
            updates = orthogonal(torch.stack([one.flatten(1) for one in ahead]))
            for name, update in zip(names, updates, strict=True):
                weight = self.weights[name]
                weight.add_(update.view_as(weight), alpha=-rate * math.sqrt(max(shape)))


class Optimizer:
    """Adam, or Adam and Muon, over the weights of a model; `tensors` go into checkpoints.

    muon_rate: of Muon, in rates of Adam's."""

    def __init__(self, weights: Mapping[str, nn.Parameter], kind: Name, muon_rate: float = 1.0):
        matrices = {name for name, weight in weights.items() if kind == "muon" and weight.ndim == 4}
        self.weights = weights
        self.muon_rate = muon_rate
        self.muon = Muon({name: weights[name] for name in weights if name in matrices})
        self.others = {name: weight for name, weight in weights.items() if name not in matrices}
        self.adam = torch.optim.Adam(self.others.values(), betas=(0.9, 0.99), fused=True)

    def step(self, rate: float) -> None:
        self.adam.param_groups[0]["lr"] = rate
        self.adam.step()
        self.muon.step(rate * self.muon_rate)
        for weight in self.weights.values():
            weight.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The moments by name: m of every weight, v of Adam's. Adam's step count is the loop's."""
        moments = {f"m/{name}": momentum for name, momentum in self.muon.momentum.items()}
        for name, weight in self.others.items():
            moments[f"m/{name}"] = self.adam.state[weight]["exp_avg"]
            moments[f"v/{name}"] = self.adam.state[weight]["exp_avg_sq"]
        return moments

    def names(self) -> list[str]:
        """Of `tensors`, before there are any."""
        return [f"m/{name}" for name in self.weights] + [f"v/{name}" for name in self.others]

    @torch.no_grad()
    def restore(self, step: int, kept: Mapping[str, Tensor]) -> None:
        for name, momentum in self.muon.momentum.items():
            momentum.copy_(kept[f"m/{name}"])
        for name, weight in self.others.items():
            self.adam.state[weight] = {
                "step": torch.tensor(float(step), device=weight.device),
                "exp_avg": torch.empty_like(weight).copy_(kept[f"m/{name}"]),
                "exp_avg_sq": torch.empty_like(weight).copy_(kept[f"v/{name}"]),
            }
