"""What is learned from what was made for a part of a batch: here, to take noise off images."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.diffusion.checkpoint import Weights
from composcope.diffusion.log import Sums, sums
from composcope.diffusion.loss import Noise
from composcope.diffusion.penalty import Penalty
from composcope.diffusion.recipe import Recipe, layout


@dataclass(frozen=True)
class Examples:
    """What the network sees of some images: as many views of each, one image after another."""

    x0: Float[Tensor, "views channel height width"]
    cond: Float[Tensor, "views features"] | None
    # 0 where a view leaves the image: no noise there
    inside: Float[Tensor, "views 1 height width"] | None = None


Make: TypeAlias = Callable[[int, int], Examples]  # (position of the first image, how many)
# The mean loss, and the numbers for the log.
Learned: TypeAlias = tuple[Float[Tensor, ""], Sums]


@runtime_checkable
class Lesson(Protocol):
    """How what was made for a part of a batch becomes a loss; `sources`: the images' generators."""

    def __call__(self, loss: nn.Module, made: Any, sources: list[torch.Generator]) -> Learned: ...

    def tensors(self) -> dict[str, Tensor]:
        """What is left for the next step, which goes into the checkpoint."""
        ...

    def restore(self, kept: Weights) -> None: ...


class Denoising:
    """The lesson of images: noise is put on them, and the network takes it away."""

    def __init__(self, recipe: Recipe, penalty: Penalty | None = None):
        self.recipe = recipe
        self.penalty = penalty

    def __call__(self, loss: nn.Module, made: Examples, sources: list[torch.Generator]) -> Learned:
        device = sources[0].device
        x0 = made.x0.to(device=device, memory_format=layout(self.recipe))
        cond = None if made.cond is None else made.cond.to(device)
        levels = Noise(self.recipe.P_mean, self.recipe.P_std)
        views = len(x0) // len(sources)
        sigma, noise = levels.draw(x0, [source for source in sources for _ in range(views)])
        if made.inside is not None:
            noise = noise * made.inside.to(device)
        without: tuple = ()
        if self.penalty is not None and cond is not None:
            without = self.penalty.draw(cond, x0.shape[2:], sources) or ()
        with torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.bf16):
            objective, error, *far = loss(x0, sigma, noise, cond, *without)
        total = objective.mean()
        if self.penalty is not None and far:
            total = total + self.penalty.scaled(far[0])
        return total, sums(objective, error, sigma, levels)

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def restore(self, kept: Weights) -> None:
        pass
