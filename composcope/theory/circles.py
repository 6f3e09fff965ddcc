"""The diffusion side of SIM: circles of two concepts; one combination is never trained on.

    concepts (blue?, small?): trained on 00, 01, 10; asked for 11     condition: diameter, R, G, B

Read out exactly, not by a trained classifier: the area and the mean colour of what stands out from
the background."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call

from composcope.diffusion.denoiser import Denoiser, Precond
from composcope.diffusion.ema import Weights
from composcope.diffusion.lesson import Examples
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.recipe import Recipe
from composcope.diffusion.sample import noise_levels, sample
from composcope.diffusion.train import train
from composcope.files import locked
from composcope.nets import UncertaintyHead, UNet, renormalize
from composcope.results import Row, add_rows, mean, read_rows, row, share, where
from composcope.theory.claim import Claim

TRAINED = ((0, 0), (0, 1), (1, 0))
HELD_OUT = (1, 1)
CONCEPTS = ("colour", "size")
CALLED = {(0, 0): "red big", (0, 1): "red small", (1, 0): "blue big", (1, 1): "blue small"}
DIAMETERS = (0.7, 0.3)  # big, small, as shares of the image
DRAWS = 32  # images for each combination and moment, as in the paper
MOMENTS = 16  # of a training
BATCH = 64
Images = Float[Tensor, "n 3 side side"]


@dataclass(frozen=True)
class Circles:
    """Circles of brightness 1 on 0; `contrast` between red and blue is the strength of colour."""

    contrast: float = 0.5
    side: int = 32
    seed: int = 0

    def cond(self, concepts: Int[Tensor, "n 2"]) -> Float[Tensor, "n 4"]:
        """Diameter, R, G, B."""
        blue, small = concepts.float().T
        tint = self.contrast * (0.5 - blue)
        diameter = DIAMETERS[0] + (DIAMETERS[1] - DIAMETERS[0]) * small
        return torch.stack([diameter, 1 + tint, torch.ones_like(tint), 1 - tint], 1)

    def draw(self, cond: Float[Tensor, "n 4"], centres: Float[Tensor, "n 2"]) -> Images:
        axis = (torch.arange(self.side) + 0.5) / self.side
        x, y = centres.T[..., None, None]
        far = (axis[:, None] - y) ** 2 + (axis - x) ** 2
        return (far.sqrt() < cond[:, 0, None, None] / 2)[:, None] * cond[:, 1:, None, None]

    def examples(self, start: int, count: int) -> Examples:
        """Images start, start + 1, ..: combinations in turn, centres from their own generators."""
        numbers = range(start, start + count)
        shifts = [torch.rand(2, generator=generator(self.seed, i)) - 0.5 for i in numbers]
        cond = self.cond(torch.tensor([TRAINED[i % len(TRAINED)] for i in numbers]))
        return Examples(self.draw(cond, 0.5 + 0.2 * torch.stack(shifts)), cond)

    def signal(self, concept: str) -> float:
        """Its contrast: the mean squared difference of two trained images that differ in it alone.

        Red big against blue big, and against red small. It is what a_k is to SIM."""
        other = {"colour": (1, 0), "size": (0, 1)}[concept]
        one, two = self.draw(self.cond(torch.tensor([(0, 0), other])), torch.full((2, 2), 0.5))
        return (one - two).square().mean().item()

    def read(self, images: Images) -> Int[Tensor, "n 2"]:
        """(blue?, small?) of each image; -1 where nothing stands out."""
        there = images.mean(1) > 0.5
        area = there.sum((1, 2)) / self.side**2
        redness = ((images[:, 0] - images[:, 2]) * there).sum((1, 2))
        between = torch.pi / 4 * DIAMETERS[0] * DIAMETERS[1]  # geometric mean of the two areas
        concepts = torch.stack([redness < 0, area < between], 1).long()
        return concepts.masked_fill((area == 0)[:, None], -1)

    def right(self, denoiser: Denoiser, asked: tuple[int, int], num: int) -> Int[Tensor, "num 2"]:
        """For each of `num` draws of one combination: is its colour right, is its size right?"""
        concepts = torch.tensor([asked] * num)
        shape = (3, self.side, self.side)
        drawn = sample(denoiser, range(num), shape, self.cond(concepts), noise_levels(12))
        return (self.read(drawn) == concepts).long()


def circles(contrast: float, images: int, seed: int, keep: Path, draws: int = DRAWS) -> list[Row]:
    """Train on circles; the accuracy of each concept in each combination, at sixteen moments.

    `keep`: the folder of the run, which goes on where it was stopped."""
    data = Circles(contrast, seed=seed)
    out = keep / "accuracy.jsonl"
    torch.manual_seed(seed)
    small: dict[str, Any] = {"model_channels": 32, "channel_mult": (1, 2), "num_blocks": 1}
    net = UNet(data.side, features=4, **small, attn_resolutions=(), fold=2)
    model = Precond(net, UncertaintyHead(), sigma_data=data.examples(0, 96).x0.std().item())
    steps = -(-images // BATCH)
    every = max(1, steps // MOMENTS)
    recipe = Recipe(images, BATCH, sheet_every=every, average_every=steps + 1, seed=seed)

    def draw(step: int, weights: Weights) -> None:
        def denoiser(x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
            return functional_call(model, dict(weights), (x, sigma, cond))

        add_rows(out, accuracies(data, denoiser, step, draws))

    with locked(keep):
        no_snapshots = lambda name, weights: None  # noqa: E731
        train(model, Loss(model), data.examples, recipe, keep, renormalize, no_snapshots, draw)
    return read_rows(out)


def accuracies(data: Circles, denoiser: Denoiser, step: int, draws: int) -> list[Row]:
    rows = []
    for asked in (*TRAINED, HELD_OUT):
        right = data.right(denoiser, asked, draws).sum(0).tolist()
        moment = {"step": step, "images": step * BATCH, "condition": CALLED[asked]}
        about = {"run": "circles", "contrast": data.contrast, "seed": data.seed, **moment}
        for concept, hits in zip(CONCEPTS, right, strict=True):
            rows.append(row("circles/accuracy", share(hits, draws), concept=concept, **about))
    return rows


# What the papers claim of such trainings, from the rows of several.


def accuracy_curve(
    rows: Sequence[Row], contrast: float, seed: int, concept: str, asked: str
) -> list[Row]:
    """The accuracy of one concept along one training, a row a moment."""
    found = where(rows, contrast=contrast, seed=seed, concept=concept, condition=asked)
    return sorted(found, key=lambda row: row.step or 0)


def falls(curve: Sequence[Row]) -> bool:
    """Whether it ever falls so far below an earlier value that their intervals are apart."""
    highest = -1.0
    for one in curve:
        if one.high is not None and one.high < highest:
            return True
        highest = max(highest, one.low or 0.0)
    return False


def circle_claims(rows: Sequence[Row]) -> list[Row]:
    """Which concept comes first, if more contrast brings it forward, and if accuracy ever falls.

    The order is judged where both concepts are seen in training (their mean over the three trained
    combinations), the fall on the combination that is not."""
    accuracy = where(rows, what="circles/accuracy")
    contrasts = sorted({row.contrast for row in accuracy if row.contrast is not None})
    seeds = sorted({row.seed for row in accuracy if row.seed is not None})
    if not contrasts or not seeds:
        return []

    def progress(contrast: float, seed: int, concept: str) -> float:
        """Mean accuracy over the training: the earlier a concept is learned, the larger."""
        curves = [
            accuracy_curve(accuracy, contrast, seed, concept, CALLED[asked]) for asked in TRAINED
        ]
        return float(np.mean([np.mean([row.estimate.value for row in one]) for one in curves]))

    first = []
    for contrast, seed in product(contrasts, seeds):
        more, less = sorted(CONCEPTS, key=Circles(contrast).signal, reverse=True)
        first.append(progress(contrast, seed, more) > progress(contrast, seed, less))
    earlier = [
        progress(high, seed, "colour") > progress(low, seed, "colour")
        for (low, high), seed in product(pairwise(contrasts), seeds)
    ]
    cases = product(contrasts, seeds, CONCEPTS)
    fallen = [falls(accuracy_curve(accuracy, *case, CALLED[HELD_OUT])) for case in cases]
    says = "the concept with more contrast is learned first (share of trainings)"
    claims = [Claim("circles/order", says, 1.0, mean(np.array(first)))]
    says = "accuracy on the unseen combination is not monotone (share of curves)"
    share = mean(np.array(fallen))
    claims.append(Claim("circles/not_monotone", says, 1 / len(fallen), share, rule=">="))
    if earlier:
        says = "more contrast between colours brings colour forward (share of pairs of trainings)"
        claims.append(Claim("circles/contrast", says, 1.0, mean(np.array(earlier))))
    return [replace(claim.row("sim"), run="circles") for claim in claims]
