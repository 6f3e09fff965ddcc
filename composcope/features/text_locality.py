"""Locality of a text-to-image model in its latents: what a place looks at, and which words it hears.

    G (equation 9) at a few places, I_k (equation 10) of every word k, along the way from noise to image    (section G)

The measures themselves are handed in, as this room does not know the one they live in.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.features.measure import Guided, Levels, walk
from composcope.features.probe import Measured, interval, over_samples
from composcope.features.sdxl import SDXL
from composcope.features.words import Words, dominant, thirds

Pixel = tuple[int, int]  # (row, column) of a latent


@dataclass(frozen=True)
class Walk:
    """Where to look: places (u, v) in [0, 1]^2 at the named levels, words at ten steps and those of the levels."""

    steps: int
    levels: Levels
    places: tuple[tuple[float, float], ...]
    side: int
    scale: float

    @property
    def times(self) -> list[int]:
        return sorted({round(i * (self.steps - 1) / 9) for i in range(10)} | set(self.levels.steps.values()))

    @property
    def sigmas(self) -> list[float]:
        return [float(self.levels.sigmas[step]) for step in self.times]

    @property
    def pixels(self) -> list[Pixel]:
        side = self.side
        return [(min(int(v * side), side - 1), min(int(u * side), side - 1)) for u, v in self.places]

    def calls(self, words: int, channels: int) -> int:
        """Calls of the denoiser for one seed; a backward pass counts for two."""
        backward = 3 * len(self.levels.steps) * len(self.places) * channels
        return self.steps * (1 if self.scale == 1 else 2) + len(self.times) * (1 + words) + backward


def maps(
    model: SDXL, said: Words, seed: int, walk_: Walk, gradient: Callable, influence: Callable
) -> dict[str, Tensor]:
    """One seed: gradients [level, place, h, w], influences [time, word, h, w], and the image that came out."""
    cond = said([said.all])
    gradients, influences = [], []
    x = model.start([seed], walk_.steps)
    with torch.no_grad():
        for step, (sigma, x) in enumerate(walk(Guided(model, walk_.scale), x, walk_.levels.sigmas, cond)):  # noqa: B020
            if step in walk_.levels.steps.values():
                gradients.append(gradient(model, x, float(sigma), cond, walk_.pixels))
            if step in walk_.times:
                influences.append(influence(model, x, float(sigma), said, said.all))
    image = torch.from_numpy(model.decode(x)[0])
    return {"gradients": torch.stack(gradients), "influences": torch.stack(influences), "image": image}


def measured(claim: str, setting: dict, resampled: Float[np.ndarray, " one_and_resamples"]) -> Measured:
    return Measured(claim, setting, *interval(resampled))


def squares(gradients: Float[np.ndarray, "seed level place h w"], along: Walk, square: Callable) -> list[Measured]:
    """The side of the square with 90 % of the squared gradient (section F), as a share of the width."""
    found = []
    for i, level in enumerate(along.levels.steps):
        for j, (place, pixel) in enumerate(zip(along.places, along.pixels, strict=True)):
            sides = square(gradients[:, i, j], pixel) / along.side
            found.append(measured("square", {"level": level, "place": list(place)}, over_samples(sides)))
    return found


def heard(influences: Float[np.ndarray, "seed time word h w"], said: Words, along: Walk) -> list[Measured]:
    """Each word's influence over time at each place, the dominant words, and how alike the first two places hear."""
    found, curves = [], []
    for place, (row, column) in zip(along.places, along.pixels, strict=True):
        means = over_samples(influences[..., row, column])  # [1 + resamples, time, word]
        curves.append(means.reshape(len(means), -1))
        for i, sigma in enumerate(along.sigmas):
            at = {"sigma": sigma, "place": list(place)}
            for k, word in enumerate(said.all):
                found.append(measured("influence", at | {"word": word.text, "start": word.start}, means[:, i, k]))
            strong = ", ".join(said.all[k].text for k in dominant(torch.from_numpy(means[0, i])))
            found.append(Measured("dominant", at, strong or "none"))
    alike = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(curves[0], curves[1], strict=True)])
    return [*found, measured("two_places", {"places": [list(place) for place in along.places[:2]]}, alike)]


def meant(influences: Float[np.ndarray, "seed time word h w"], said: Words, along: Walk) -> list[Measured]:
    """For words that speak of a third of the width, the share of their squared influence in it; chance is 1/3."""
    found = []
    for word, third in thirds(said.prompt).items():
        shares = in_third(influences[:, :, said.all.index(word)], third)
        for i, sigma in enumerate(along.sigmas):
            setting = {"sigma": sigma, "word": word.text, "start": word.start, "chance": 1 / 3}
            found.append(measured("share_in_third", setting, over_samples(shares[:, i])))
    return found


def in_third(influence: Float[np.ndarray, "*rest h w"], third: int) -> Float[np.ndarray, "*rest"]:
    """The share of squared influence in the left, middle or right third; a column on an edge counts with its part."""
    width = influence.shape[-1]
    column = np.arange(width)
    part = np.minimum(column + 1, (third + 1) * width / 3) - np.maximum(column, third * width / 3)
    energy = np.square(influence).sum(-2)
    return (energy * part.clip(0, 1)).sum(-1) / energy.sum(-1)
