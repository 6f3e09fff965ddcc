"""Denoisers that were never trained: softmax averages over training images, patch by patch.

    x0(cell) = sum_n w_n y_n(cell),    w_n ~ exp(-|x_patch - y_n,patch|^2 / 2 sigma^2)
                                       over the training images n that agree

    ideal              patch = image; the exact score of the training set: it returns its images
    local              patch = (2k+1) x (2k+1) cells around the cell
                       (Kamb & Ganguli 2024; Niedoba et al. 2024)
    local conditional  the same, over patches that agree with the conditions asked for inside

The cells are those of the paper's local intervention (E.3): one weight a cell, not a pixel, and
patches only speak for their own place in the image (not equivariant). At the border a patch is what
is left of it inside the image. Where no training patch agrees everywhere, those that agree best
count: first in the centre cell, then in the 3 x 3 around it, and so on outwards (there the machine
is more local in conditions than in pixels). The ideal one compares whole sets."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Sigmas, X
from composcope.errors import InputError

OverCells = Float[Tensor, "cells *rest"]
CHUNK = 2**25  # entries of the largest array made at once (128 MiB in float32)


@dataclass(frozen=True, eq=False)
class ScoreMachine:
    """`radius` k in cells of a grid x grid image; grid - 1 or more is the ideal (patch = image)."""

    cells: Float[Tensor, "cells images values"]
    conditions: Float[Tensor, "cells images"] | None  # None: conditions are ignored
    radius: int
    channels: int

    @property
    def grid(self) -> int:
        return round(len(self.cells) ** 0.5)

    @cached_property
    def half_norms(self) -> Float[Tensor, "cells 1 images"]:
        return 0.5 * self.cells.square().sum(-1)[:, None]

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        size = max(1, CHUNK // self.cells[..., 0].numel())
        conds = [None] * len(x) if cond is None else cond.split(size)
        return torch.cat(list(map(self._some, x.split(size), sigma.split(size), conds)))

    def _some(self, x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        at = to_cells(x.to(self.cells.dtype), self.grid)
        # |x - y|^2 of a patch is the sum over its cells, so a product made once serves every patch
        # that holds the cell; |x|^2 is the same for all images and falls out of the softmax.
        logs = (at @ self.cells.mT).sub_(self.half_norms)
        logs = self.over_patches(logs, self.radius).div_(sigma.to(logs)[:, None] ** 2)
        if self.conditions is not None and cond is not None:
            for row, asked in enumerate(cond.tolist()):
                logs[:, row].masked_fill_(disagreeing(self, tuple(asked)), -torch.inf)
        return to_image(logs.softmax(-1) @ self.cells, self.channels).to(x.dtype)

    def over_patches(self, values: OverCells, radius: int) -> OverCells:
        """The sum over the patch around every cell: down the columns, then along the rows."""
        at = torch.arange(self.grid)
        near = ((at[:, None] - at).abs() <= radius).to(values)
        down = near @ values.reshape(self.grid, -1)
        return (near @ down.view(self.grid, self.grid, -1)).view_as(values)


@lru_cache(maxsize=256)  # the steps of one sampling run ask for the same
def disagreeing(machine: ScoreMachine, asked: tuple[float, ...]) -> Bool[Tensor, "cells images"]:
    """The patches that do not count: all but those nearest to `asked` from the centre outwards."""
    assert machine.conditions is not None
    apart = (torch.tensor(asked).to(machine.conditions)[:, None] - machine.conditions).square()
    out = torch.zeros_like(apart, dtype=torch.bool)
    whole = machine.grid - 1
    for radius in [whole] if machine.radius >= whole else range(machine.radius + 1):
        mismatch = machine.over_patches(apart, radius).masked_fill_(out, torch.inf)
        out = mismatch > mismatch.amin(-1, keepdim=True)
    return out


def score_machine(
    images: Float[Tensor, "images channel height width"],
    cond: Float[Tensor, "images features"] | None,
    grid: int,
    radius: int | None,
) -> ScoreMachine:
    """`cond` counts objects in grid x grid cells, row by row; radius None: the ideal machine."""
    height, width = images.shape[-2:]
    if height != width or width % grid:
        cells = f"{grid} x {grid} square cells"
        raise InputError(f"images of {(height, width)} pixels cannot be cut into {cells}")
    if cond is not None and cond.shape != (len(images), grid**2):
        needs = f"{len(images)} images on a grid of {grid} need {grid**2} features"
        raise InputError(f"cond is {tuple(cond.shape)}; {needs}")
    radius = grid - 1 if radius is None else min(radius, grid - 1)
    conditions = None if cond is None else cond.T.contiguous().to(images.dtype)
    return ScoreMachine(to_cells(images, grid), conditions, radius, images.shape[1])


def to_cells(images: Tensor, grid: int) -> Tensor:
    """[n c h w] -> [cells n values]."""
    n, c, h, w = images.shape
    cells = images.reshape(n, c, grid, h // grid, grid, w // grid)
    return cells.permute(2, 4, 0, 1, 3, 5).reshape(grid**2, n, -1)


def to_image(cells: Tensor, channels: int) -> Tensor:
    """The inverse of to_cells."""
    grid, side = round(len(cells) ** 0.5), round((cells.shape[-1] // channels) ** 0.5)
    rows = cells.reshape(grid, grid, -1, channels, side, side).permute(2, 3, 0, 4, 1, 5)
    return rows.reshape(-1, channels, grid * side, grid * side)
