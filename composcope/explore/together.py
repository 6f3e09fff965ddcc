"""Several columns of one model in one batch, each with an intervention of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser, Wrapper
from composcope.explore.requests import Picture
from composcope.locality.intervention import LocalConditions, in_turns, intervene
from composcope.locality.neighbourhoods import Asked


@dataclass(frozen=True)
class Whole:
    """All conditions for every pixel: the neighbourhoods of a column without an intervention."""

    def subsets(self, asked: Asked) -> Tensor:
        return torch.ones(1, len(asked.parts), dtype=torch.bool, device=asked.parts.device)

    def weights(self, asked: Asked, subsets: Tensor, x0: Tensor) -> Tensor:
        return x0.new_ones(1, *asked.size)


class Together(Wrapper):
    """Columns of one model, each with neighbourhoods of its own; their passes go through the
    network as one batch."""

    def __init__(self, denoiser: Any, neighbourhoods: Sequence[Any]):
        super().__init__(denoiser)
        self.neighbourhoods = neighbourhoods

    def __call__(self, x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        if cond is None:
            return self.denoiser(x, sigma, cond)
        size = (x.shape[2], x.shape[3])
        split = self.conditioner.split
        asked = [
            Asked(split(c), self.conditioner, float(s), size)
            for c, s in zip(cond, sigma, strict=True)
        ]
        columns = list(zip(self.neighbourhoods, asked, strict=True))
        subsets = [near.subsets(a) for near, a in columns]
        conds = [s.to(cond.dtype) @ a.parts.to(cond) for s, a in zip(subsets, asked, strict=True)]
        counts = [len(s) for s in subsets]
        image = torch.repeat_interleave(torch.tensor(counts, device=x.device))
        x0 = in_turns(self.denoiser, x, sigma, image, torch.cat(conds), 256).split(counts)
        weighed = zip(columns, subsets, x0, strict=True)
        return torch.stack(
            [(near.weights(a, s, own)[:, None] * own).sum(0) for (near, a), s, own in weighed]
        )


def together(drawer: Any, pictures: Sequence[Picture]) -> Denoiser:
    """One denoiser for a batch whose rows are these pictures."""
    wrapped = [
        None if p.intervention == "none" else intervene(drawer, p.intervention, p.radius)
        for p in pictures
    ]
    if not any(wrapped):
        return drawer
    if len(wrapped) == 1:
        return cast(LocalConditions, wrapped[0])
    return Together(drawer, [one.neighbourhoods if one else Whole() for one in wrapped])
