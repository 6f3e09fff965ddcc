"""A denoiser as one of its pixels sees it: the same there, for a fraction of the passes."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser, Wrapper
from composcope.explore.requests import Picture
from composcope.locality.intervention import LocalConditions, intervene
from composcope.locality.neighbourhoods import Asked, Neighbourhoods
from composcope.nets.local_unet import LocalUNet, Patches


@dataclass(frozen=True)
class Heard:
    """Of neighbourhoods whose weights do not depend on what is denoised, the subsets that one pixel
    takes something of."""

    neighbourhoods: Neighbourhoods
    pixel: tuple[int, int]

    @property
    def about(self) -> Any:
        return self.neighbourhoods.about

    def subsets(self, asked: Asked) -> Tensor:
        return self.heard(asked)[0]

    def weights(self, asked: Asked, subsets: Tensor, x0: Tensor) -> Tensor:
        return self.heard(asked)[1]

    def heard(self, asked: Asked) -> tuple[Tensor, Tensor]:
        subsets = self.neighbourhoods.subsets(asked)
        nothing = torch.zeros(len(subsets), 1, *asked.size)
        weights = self.neighbourhoods.weights(asked, subsets, nothing)
        kept = weights[(slice(None), *self.pixel)] != 0
        return subsets[kept], weights[kept]


class OnePatch(Wrapper):
    """A patch-local model in the cell of one pixel, and zero elsewhere."""

    def __init__(self, denoiser: Denoiser, patches: Patches, pixel: tuple[int, int]):
        super().__init__(denoiser)
        self.patches = patches
        self.cell = [place // patches.cell for place in pixel]

    def __call__(self, x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        if cond is None:
            cond = x.new_zeros(len(x), self.patches.whole_features)
        image = torch.arange(len(x))
        cell = torch.tensor([self.cell]).expand(len(x), 2)
        patch = self.patches.pixels(x, image, cell)
        x0 = self.denoiser(patch, sigma, self.patches.conditions(cond, image, cell))
        around = self.patches.k * self.patches.cell
        own = F.pad(x0, (-around,) * 4)
        top, left = (place * self.patches.cell for place in self.cell)
        bottom, right = (x.shape[2] - top - own.shape[2], x.shape[3] - left - own.shape[3])
        return F.pad(own, (left, right, top, bottom))


def at_pixel(drawer: Any, picture: Picture, pixel: tuple[int, int]) -> Denoiser:
    """What draws the picture, as the pixel sees it."""
    seen = drawer
    net = getattr(getattr(drawer, "denoiser", None), "net", None)
    if isinstance(net, LocalUNet):
        seen = OnePatch(drawer, net.patches, pixel)
    if picture.intervention == "none":
        return seen
    near = intervene(drawer, picture.intervention, picture.radius).neighbourhoods
    return LocalConditions(seen, neighbourhoods=Heard(near, pixel))
