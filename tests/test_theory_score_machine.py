"""The score machines against brute force, and the claim: local and conditional composes, global
memorises."""

import pytest
import torch
from torch.nn import functional as F

from composcope.diffusion.sample import noise_levels, sample
from composcope.errors import InputError
from composcope.theory.score_machine import score_machine, to_cells, to_image

GRID, SIDE = 4, 8
BLOB = torch.tensor(
    [[[1.0, 1.0], [1.0, 0.5]], [[0.2, 1.0], [0.2, 0.2]], [[-1.0, 0.0], [0.0, 0.0]]]
).double()


def blobs(cond: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """8 x 8 images with a blob of one of two colours in every cell that cond asks for, 0
    elsewhere."""
    sign = torch.randint(0, 2, cond.shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1
    grid = (cond * sign).view(-1, 1, GRID, GRID).double()
    return F.interpolate(grid, scale_factor=2) * BLOB.repeat(1, GRID, GRID)


def training(count: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    """Scenes of one and two blobs."""
    order = (
        torch.rand(count, GRID**2, generator=torch.Generator().manual_seed(1)).argsort(1).argsort(1)
    )
    cond = (order < 1 + torch.arange(count)[:, None] % 2).double()
    return blobs(cond), cond


def brute(images, conditions, x, sigma, asked, radius):
    """One cell at a time, straight from the formula."""
    out, m = torch.empty_like(x), SIDE // GRID
    for r in range(GRID):
        for c in range(GRID):

            def patch(at, k, r=r, c=c):
                rows, cols = [slice(max(0, i - k), i + k + 1) for i in (r, c)]
                return at[..., rows, cols]

            def pixels(at, k, r=r, c=c):
                rows, cols = [slice(max(0, i - k) * m, (i + k + 1) * m) for i in (r, c)]
                return at[..., rows, cols]

            keep = torch.ones(len(images), dtype=torch.bool)
            for k in () if asked is None else [radius] if radius == GRID - 1 else range(radius + 1):
                there = patch(conditions.view(-1, GRID, GRID), k)
                apart = (there - patch(asked.view(GRID, GRID), k)).square().sum((1, 2))
                keep &= apart == apart[keep].min()
            distance = (pixels(images[keep], radius) - pixels(x, radius)).square().sum((1, 2, 3))
            weight = (-distance / (2 * sigma**2)).softmax(0)
            pixels(out, 0)[:] = torch.einsum("n,nchw->chw", weight, pixels(images[keep], 0))
    return out


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("conditional", [True, False])
def test_the_machine_is_the_formula(radius, conditional):
    images, cond = training(40)
    images = images + 0.1 * torch.randn(
        images.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )
    machine = score_machine(images, cond if conditional else None, GRID, radius)
    asked = (torch.rand(5, GRID**2, generator=torch.Generator().manual_seed(3)) < 0.3).double()
    x = torch.randn(
        5, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(4), dtype=torch.float64
    )
    sigma = torch.tensor([0.05, 0.3, 1.0, 5.0, 80.0], dtype=torch.float64)
    denoised = machine(x, sigma, asked)
    single = score_machine(images.float(), cond.float() if conditional else None, GRID, radius)
    coarse = single(x.float(), sigma.float(), asked.float())
    for i in range(5):
        expected = brute(images, cond, x[i], sigma[i], asked[i] if conditional else None, radius)
        torch.testing.assert_close(denoised[i], expected, atol=1e-9, rtol=0)
        torch.testing.assert_close(coarse[i].double(), expected, atol=2e-3, rtol=0)


def test_chunks_do_not_change_the_answer(monkeypatch):
    images, cond = training(20)
    machine = score_machine(images, cond, GRID, 1)
    x, sigma = (
        torch.randn(7, 3, SIDE, SIDE, dtype=torch.float64),
        torch.linspace(0.1, 2, 7, dtype=torch.float64),
    )
    whole = machine(x, sigma, cond[:7])
    monkeypatch.setattr("composcope.theory.score_machine.CHUNK", 3 * GRID**2 * 20)
    torch.testing.assert_close(machine(x, sigma, cond[:7]), whole)
    torch.testing.assert_close(
        machine(x, sigma, None), score_machine(images, None, GRID, 1)(x, sigma, None)
    )


def asked_for(counts=(0, 1, 2, 3, 5, 8, 12, 16)) -> torch.Tensor:
    numbers = torch.rand(len(counts), GRID**2, generator=torch.Generator().manual_seed(9))
    order = numbers.argsort(1).argsort(1)
    return (order < torch.tensor(counts)[:, None]).double()


def drawn_by(machine, asked):
    return sample(machine, range(len(asked)), (3, SIDE, SIDE), asked, noise_levels(10))


@pytest.mark.parametrize("radius", [0, 1])
def test_local_and_conditional_composes_beyond_its_training_counts(radius):
    """Blobs stay inside their cells, so the data is a CPC whose blocks are the cells: every cell
    must be exact."""
    images, cond = training()
    asked = asked_for().repeat(3, 1)
    drawn = drawn_by(score_machine(images, cond, GRID, radius), asked)
    torch.testing.assert_close(drawn.abs(), blobs(asked).abs().float(), atol=0.02, rtol=0)


def test_global_memorises():
    images, cond = training()
    asked = asked_for()
    drawn = drawn_by(score_machine(images, cond, GRID, None), asked)
    nearest = torch.cdist(drawn.flatten(1).double(), images.flatten(1)).min(1).values
    assert nearest.max() < 0.02
    counts = (drawn[:, 0, ::2, ::2].abs() > 0.5).sum((1, 2))
    assert counts.max() == 2 and counts[asked.sum(1) == 2] == 2


def test_local_without_conditions_composes_but_not_what_was_asked():
    images, _ = training()
    asked = asked_for()
    drawn = drawn_by(score_machine(images, None, GRID, 0), asked)
    placed = drawn[:, 0, ::2, ::2].abs().flatten(1) > 0.5
    assert (placed != asked.bool()).any(1).float().mean() > 0.7
    at = to_cells(drawn.double(), GRID)
    # Yet every cell was seen.
    assert torch.cdist(at, to_cells(images, GRID)).min(-1).values.max() < 0.02


def test_cells_and_back_and_bad_shapes():
    images, cond = training(6)
    torch.testing.assert_close(to_image(to_cells(images, GRID), 3), images)
    with pytest.raises(InputError, match="3 x 3"):
        score_machine(images, None, 3, 1)
    with pytest.raises(InputError, match="features"):
        score_machine(images, cond[:, :5], GRID, 1)
