"""The diffusion side of SIM: circles of two concepts, colour and size, one combination of which is never trained on.

    concepts (blue?, small?):  trained on 00, 01, 10;  asked for 11          condition: diameter and R, G, B

Read out exactly, not by a trained classifier: the area and the mean colour of what stands out from the background.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser
from composcope.diffusion.loss import generator
from composcope.diffusion.sample import noise_levels, sample
from composcope.diffusion.train import Examples

TRAINED = ((0, 0), (0, 1), (1, 0))
HELD_OUT = (1, 1)
DIAMETERS = (0.7, 0.3)  # big, small, as shares of the image


@dataclass(frozen=True)
class Circles:
    """Background 0; circles of brightness 1, `contrast` apart in red and blue: the strength of the colour concept."""

    contrast: float = 0.5
    side: int = 32
    seed: int = 0

    def cond(self, concepts: Int[Tensor, "n 2"]) -> Float[Tensor, "n 4"]:
        """Diameter, R, G, B."""
        blue, small = concepts.float().T
        tint = self.contrast * (0.5 - blue)
        diameter = DIAMETERS[0] + (DIAMETERS[1] - DIAMETERS[0]) * small
        return torch.stack([diameter, 1 + tint, torch.ones_like(tint), 1 - tint], 1)

    def draw(self, cond: Float[Tensor, "n 4"], centres: Float[Tensor, "n 2"]) -> Float[Tensor, "n 3 side side"]:
        axis = (torch.arange(self.side) + 0.5) / self.side
        far = (axis[:, None] - centres[:, 1, None, None]) ** 2 + (axis - centres[:, 0, None, None]) ** 2
        return (far.sqrt() < cond[:, 0, None, None] / 2)[:, None] * cond[:, 1:, None, None]

    def examples(self, start: int, count: int) -> Examples:
        """Training images start, start + 1, ..: combinations in turn, centres from each image's own generator."""
        concepts = torch.tensor([TRAINED[i % len(TRAINED)] for i in range(start, start + count)])
        shifts = [torch.rand(2, generator=generator(self.seed, i)) - 0.5 for i in range(start, start + count)]
        cond = self.cond(concepts)
        return Examples(self.draw(cond, 0.5 + 0.2 * torch.stack(shifts)), cond)

    def read(self, images: Float[Tensor, "n 3 side side"]) -> Int[Tensor, "n 2"]:
        """(blue?, small?) of each image; -1 where nothing stands out."""
        there = images.mean(1) > 0.5
        area = there.sum((1, 2)) / self.side**2
        redness = ((images[:, 0] - images[:, 2]) * there).sum((1, 2))
        between = torch.pi / 4 * DIAMETERS[0] * DIAMETERS[1]  # geometric mean of the two areas
        return torch.stack([(redness < 0).long(), (area < between).long()], 1).masked_fill((area == 0)[:, None], -1)

    def right(self, denoiser: Denoiser, asked: tuple[int, int], num: int, steps: int = 12) -> Int[Tensor, "num 2"]:
        """For each of `num` draws of one combination: is its colour right, is its size right?"""
        concepts = torch.tensor([asked] * num)
        shape = (3, self.side, self.side)
        drawn = sample(denoiser, range(num), shape, self.cond(concepts), noise_levels(steps))
        return (self.read(drawn) == concepts).long()
