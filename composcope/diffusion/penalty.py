"""Local by training: a penalty on what a condition changes far from its place.

    penalty = weight E [ sum_{i far from k} I_k(i)^2 / (sum_i I_k(i)^2 + floor) ]

I_k is the conditional influence of the paper's equation 10, in the units of the training loss; far
is beyond a radius, outside the square that local conditions leave a condition to act in. It is 1
less conditional locality, at the noisy images of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.places import offsets

# Of the parts of batches, those that are penalised: each takes a second pass of the network.
SHARE = 0.25
# In units of the loss, of which knowing nothing costs 1: influence well below this is noise.
FLOOR = 1e-3


@dataclass(frozen=True)
class Penalty:
    weight: float
    radius: float  # in image sides
    conditioner: Any  # with `split`, and conditions that have places

    def draw(
        self, cond: Tensor, size: Sequence[int], sources: Sequence[torch.Generator]
    ) -> tuple[Tensor, Tensor] | None:
        """cond without one condition of each image that has any, and where that one is far away;
        None for batches that are not penalised."""
        if torch.rand((), generator=sources[0], device=sources[0].device) >= SHARE:
            return None
        without = cond.clone()
        far = cond.new_zeros(len(cond), 1, *size)
        for i, source in enumerate(sources):
            parts = self.conditioner.split(cond[i])
            if not len(parts):
                continue
            k = int(torch.randint(len(parts), (), generator=source, device=source.device))
            without[i] -= parts[k]
            place = self.conditioner.places(parts[k : k + 1]).to(cond)
            far[i] = offsets(place, (size[0], size[1])).amax(0) >= self.radius
        return without, far

    def scaled(self, shares: Float[Tensor, " n"]) -> Float[Tensor, ""]:
        """Added to the loss of a penalised batch: over all batches the mean is weight x share."""
        return self.weight / SHARE * shares.mean()


def far_share(
    influence: Float[Tensor, "n channel height width"], far: Float[Tensor, "n 1 height width"]
) -> Float[Tensor, " n"]:
    """Of the squared influence on an image, the share where it is far."""
    total = influence.mean((1, 2, 3))
    return (influence * far).mean((1, 2, 3)) / (total + FLOOR)
