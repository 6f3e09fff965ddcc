"""Muon against torch's own, against the singular value decomposition, and Adam as torch has it."""

import math

import pytest
import torch
from torch import nn

from composcope.diffusion.optimizer import MOMENTUM, Muon, Optimizer, orthogonal


@pytest.mark.parametrize("shape", [(3, 16, 40), (2, 40, 16), (1, 8, 8)])
def test_matrices_are_made_orthogonal_along_their_own_singular_vectors(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape, dtype=torch.float64)
    u, _, vt = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonal(matrices)
    diagonal = torch.einsum("nri,nrc,njc->nij", u, found, vt)
    off = diagonal - torch.diag_embed(diagonal.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-6
    assert torch.linalg.svdvals(found).min() > 0.6 and torch.linalg.svdvals(found).max() < 1.25


def test_updates_are_those_of_torch_but_for_its_half_precision():
    """torch.optim.Muon takes matrices only, and makes them orthogonal in bfloat16."""
    torch.manual_seed(0)
    start, gradients = torch.randn(24, 54), [torch.randn(24, 54) for _ in range(3)]
    theirs = nn.Parameter(start.clone())
    ours = nn.Parameter(start.clone().view(24, 6, 3, 3))
    scale = math.sqrt(54)
    twin = torch.optim.Muon(
        [theirs], lr=0.01 * scale, momentum=MOMENTUM, weight_decay=0.0, adjust_lr_fn="original"
    )
    mine = Muon({"w": ours})
    for gradient in gradients:
        theirs.grad = gradient.clone()
        # torch keeps (1 - momentum) of each gradient; the direction is the same, and it is all that
        # counts.
        ours.grad = gradient.view(24, 6, 3, 3)
        twin.step()
        mine.step(0.01)
    moved, expected = ours.detach().view(24, 54) - start, theirs.detach() - start
    assert (moved - expected).norm() / expected.norm() < 0.03
    assert moved.norm() / math.sqrt(moved.numel()) == pytest.approx(0.03, rel=0.35)


def weights() -> dict[str, nn.Parameter]:
    torch.manual_seed(1)
    shapes = {"conv": (6, 4, 3, 3), "linear": (5, 7), "gain": ()}
    return {name: nn.Parameter(torch.randn(shape)) for name, shape in shapes.items()}


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_what_is_not_a_convolution_follows_adam(kind):
    ours, theirs = weights(), weights()
    optimizer = Optimizer(ours, kind)
    adam = torch.optim.Adam(theirs.values(), lr=0.01, betas=(0.9, 0.99))
    for step in range(3):
        for some in (ours, theirs):
            for index, weight in enumerate(some.values()):
                weight.grad = torch.sin(weight.detach() * (index + step + 1))
        optimizer.step(0.01)
        adam.step()
    for name in ours:
        same = torch.allclose(ours[name], theirs[name], atol=1e-6)
        assert same == (kind == "adam" or name != "conv")


def test_matrices_may_move_at_a_rate_of_their_own():
    moved = {}
    for share in (1.0, 0.2):
        some = weights()
        optimizer = Optimizer(some, "muon", share)
        for weight in some.values():
            weight.grad = torch.sin(weight.detach())
        before = {name: weight.detach().clone() for name, weight in some.items()}
        optimizer.step(0.01)
        moved[share] = {name: some[name].detach() - before[name] for name in some}
    torch.testing.assert_close(moved[0.2]["conv"], 0.2 * moved[1.0]["conv"], rtol=1e-4, atol=1e-6)
    assert torch.equal(moved[0.2]["linear"], moved[1.0]["linear"])


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_an_optimizer_goes_on_bit_for_bit_from_its_tensors(kind):
    def advance(optimizer, some, steps):
        for step in steps:
            for index, weight in enumerate(some.values()):
                weight.grad = torch.sin(weight.detach() * (index + step + 1))
            optimizer.step(0.01)

    straight, stopped = weights(), weights()
    advance(Optimizer(straight, kind), straight, range(6))
    before = Optimizer(stopped, kind)
    advance(before, stopped, range(3))
    kept = {name: tensor.clone() for name, tensor in before.tensors().items()}
    after = Optimizer(stopped, kind)
    after.restore(3, kept)
    advance(after, stopped, range(3, 6))
    for name in straight:
        assert torch.equal(straight[name], stopped[name])
