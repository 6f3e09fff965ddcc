"""The patch-local model (appendix E.3): a cell is denoised by a network that sees only its patch.

    F[cell] = centre of unet(patch of (2k + 1) m around it, noise_label, [conditions in it, centre])

m = resolution / grid_size. Outside the image a patch holds zeros, in training as in sampling; the
centre, scaled to [-1, 1]^2, tells the network where that is. A location grid is cut to the (2k +
1)^2 cells of the patch; a list keeps its slots, entries outside the patch zeroed: in both, what is
inside stays as the whole-image model has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from composcope.errors import InputError
from composcope.nets.unet import Cond, Images, Levels, UNet
from composcope.tensors import distinct

# Pixels of the patches for one call of the network: on a laptop's core 512 patches of 20 pixels a
# side draw 18 % faster than 128 do, and 512 of 72 a third slower, since they leave its cache.
PIXELS = 512 * 20**2
Whole = Float[Tensor, "batch whole"]  # the cond of whole images
Local = Float[Tensor, "n features"]  # the cond of patches
ImageOf = Int[Tensor, " n"]  # of each patch, the image
CellOf = Int[Tensor, "n 2"]  # of each patch, row and column of its cell


@dataclass(frozen=True)
class Patches:
    """The geometry: which pixels and conditions belong to the patch of a cell (row, column)."""

    resolution: int
    grid_size: int
    k: int = 2
    slots: int = 0  # of a list conditioner; 0 is a location grid
    slot_features: int = 0
    # slots [..., slot_features] -> the (u, v) each speaks of
    place: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        if self.resolution % self.grid_size:
            divided = f"not divisible by grid_size {self.grid_size}"
            raise InputError(f"resolution {self.resolution} is {divided}")

    @property
    def cell(self) -> int:
        return self.resolution // self.grid_size

    @property
    def side(self) -> int:
        """Of a patch, in pixels."""
        return (2 * self.k + 1) * self.cell

    @property
    def features(self) -> int:
        """Of a patch's cond: the conditions in it, then the two coordinates of its centre."""
        return (self.slots * self.slot_features or (2 * self.k + 1) ** 2) + 2

    @property
    def whole_features(self) -> int:
        """Of the cond of a whole image."""
        return self.slots * self.slot_features or self.grid_size**2

    def everywhere(self, batch: int, device: torch.device) -> tuple[ImageOf, CellOf]:
        """(image, cell) of all patches of `batch` images, cell by cell within an image."""
        index = torch.arange(batch * self.grid_size**2, device=device)
        return index // self.grid_size**2, self._numbered(index % self.grid_size**2)

    def _numbered(self, cell: Int[Tensor, " n"]) -> CellOf:
        """Row and column of cells that are counted row by row."""
        return torch.stack([cell // self.grid_size, cell % self.grid_size], 1)

    def pixels(
        self, x: Images, image: ImageOf, cell: CellOf
    ) -> Float[Tensor, "n channels side side"]:
        """The patches around `cell` of `image`, zero outside the image."""
        return self._around(x, image, cell, self.cell)

    def conditions(self, cond: Whole, image: ImageOf, cell: CellOf) -> Local:
        """What the patches around `cell` of `image` are conditioned on."""
        if cond.shape[1] != self.whole_features:
            wanted = f"the patches were made for {self.whole_features}"
            raise InputError(f"cond has {cond.shape[1]} features, {wanted}")
        if self.slots:
            inside = self._slots(cond[image], cell)
        else:
            grid = cond.view(-1, 1, self.grid_size, self.grid_size)
            inside = self._around(grid, image, cell, 1).flatten(1)
        centre = (2 * cell + 1) / self.grid_size - 1
        return torch.cat([inside, centre.to(cond.dtype)], 1)

    def _around(self, x: Tensor, image: Tensor, cell: Tensor, size: int) -> Tensor:
        """The (2k + 1)^2 cells of `size` pixels around `cell`: indices, as torch.func can batch."""
        at = (cell * size)[:, :, None] + torch.arange((2 * self.k + 1) * size, device=x.device)
        padded = F.pad(x, (self.k * size,) * 4).permute(0, 2, 3, 1)
        patches = padded[image[:, None, None], at[:, 0, :, None], at[:, 1, None, :]]
        return patches.permute(0, 3, 1, 2)

    def _slots(self, cond: Tensor, cell: Tensor) -> Tensor:
        assert self.place is not None
        entries = cond.view(-1, self.slots, self.slot_features)
        v_u = self.place(entries).flip(-1)
        at = (v_u * self.grid_size).long().clamp(max=self.grid_size - 1)  # row and column
        near = ((at - cell[:, None]).abs() <= self.k).all(2, keepdim=True)
        return (entries * near).flatten(1)

    def active(self, cond: Whole) -> Bool[Tensor, "batch cells"]:
        """Whether each cell's patch holds a condition."""
        image, cell = self.everywhere(len(cond), cond.device)
        return (self.conditions(cond, image, cell)[:, :-2] != 0).any(1).view(len(cond), -1)

    def pick(self, cond: Whole, generators: Sequence[torch.Generator]) -> tuple[ImageOf, CellOf]:
        """(image, cell) of patches to train on: a positive, then a negative one of each image.

        An image without a patch of one kind (no condition, or conditions all over) gives any of its
        patches instead. Each image draws from its own generator."""
        active = self.active(cond)
        size = 2, active.shape[1]
        draws = torch.stack([torch.rand(size, generator=g, device=g.device) for g in generators])
        wanted = torch.stack([active, ~active], 1)
        cell = (draws.to(cond.device) + wanted).argmax(2).flatten()
        image = torch.arange(len(cond), device=cond.device).repeat_interleave(2)
        return image, self._numbered(cell)

    def inside(self, cond: Local) -> Float[Tensor, "n 1 side side"]:
        """1 where a patch with this cond lies inside the image and 0 elsewhere."""
        cell = ((cond[:, -2:] + 1) * self.grid_size / 2 - 0.5).round()
        first = cell * self.cell - self.k * self.cell
        at = first[:, :, None] + torch.arange(self.side, device=cond.device)
        within = ((at >= 0) & (at < self.resolution)).to(cond.dtype)
        return (within[:, 0, :, None] * within[:, 1, None, :])[:, None]


class LocalUNet(nn.Module):
    """net(x, noise_label, cond) on whole images, made of a U-Net on patches; on patches, that."""

    def __init__(self, unet: UNet, patches: Patches):
        super().__init__()
        if (unet.resolution, unet.features) != (patches.side, patches.features):
            raise InputError(
                f"patches of {patches.side} pixels and {patches.features} features need a network "
                f"made for them, not for {unet.resolution} pixels and {unet.features} features"
            )
        if patches.cell % unet.fold:
            raise InputError(f"fold {unet.fold} does not divide the cells of {patches.cell} pixels")
        self.unet, self.patches = unet, patches

    def forward(
        self, x: Images, noise_label: Levels, cond: Cond = None
    ) -> Float[Tensor, "batch outputs height width"]:
        """Whole images, or patches, told by the length of cond (they differ by the centre)."""
        if cond is None:
            cond = x.new_zeros(len(x), self.patches.whole_features)
        if cond.shape[1] == self.patches.features:
            # Outside the image the input is zero, and nothing is asked of the output.
            inside = self.patches.inside(cond)
            return self.unet(x * inside, noise_label, cond) * inside
        image, cell = self.patches.everywhere(len(x), x.device)
        local = self.patches.conditions(cond, image, cell)
        # Images that differ only in what is asked share the patches in which nothing else is asked.
        noisy = distinct(x, noise_label[:, None])[1]
        first, which = distinct(noisy[image, None], local)
        image, cell, local = image[first], cell[first], local[first]
        whole = self.patches.pixels(x, image, cell), noise_label[image], local
        count = max(1, PIXELS // self.patches.side**2)
        chunks = zip(*(part.split(count) for part in whole), strict=True)
        cells = torch.cat([self.unet(*chunk, centre=self.patches.cell) for chunk in chunks])[which]
        grid = cells.unflatten(0, (-1, self.patches.grid_size, self.patches.grid_size))
        return grid.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
