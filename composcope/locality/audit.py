"""The whole measurement of one model: maps at each noise level, the numbers made of them, and their table.

    report = audit(denoiser, images, condition_sets, conditioner)
    print(report.table())

Any denoiser will do; without a conditioner only pixels are measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Conditioner, ConditionSet, Denoiser, X
from composcope.diffusion.sample import noise, noise_levels
from composcope.errors import InputError
from composcope.locality.influence import influences, noised, trajectory
from composcope.locality.jacobian import Pixel, levels, pixel_gradients
from composcope.locality.profile import (
    GRID,
    RADIUS,
    Estimate,
    centred_square,
    chance,
    estimate,
    near,
    own_share,
    resampled,
    share,
)

States = Literal["noised", "trajectory"]


@dataclass(frozen=True)
class Level:
    """What was measured at one noise level. Samples with fewer conditions than others are filled up with NaN."""

    sigma: float
    x0: Float[np.ndarray, "sample channel height width"]
    gradients: Float[np.ndarray, "sample pixel height width"]
    influences: Float[np.ndarray, "sample condition height width"]


@dataclass(frozen=True)
class Measured:
    """One number: what it is, where (sigma, pixel, condition) and how sure."""

    name: str
    estimate: Estimate
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """The report on one model: `levels` hold the maps, `rows` the numbers, `table()` prints the main ones."""

    levels: tuple[Level, ...]
    pixels: tuple[Pixel, ...]
    places: Float[np.ndarray, "sample condition 2"]
    radius: float = RADIUS
    grid: int = GRID
    fraction: float = 0.9

    @property
    def chance(self) -> float:
        return chance(self.places, self.radius, self.grid)

    @property
    def conditional_locality(self) -> Estimate:
        """The scalar of `profile`, over all levels, samples and conditions; NaN if no condition acts."""
        return self._near_share(self.levels)

    @cached_property
    def rows(self) -> list[Measured]:
        rows = [row for level in self.levels for row in self._pixel_rows(level)]
        if self.places.shape[1] and len(self.levels):
            rows += [row for level in self.levels for row in self._condition_rows(level)]
            rows.append(Measured("conditional_locality", self.conditional_locality, {"chance": round(self.chance, 4)}))
        return rows

    def _pixel_rows(self, level: Level) -> Iterable[Measured]:
        for index, pixel in enumerate(self.pixels):
            maps, at = resampled(level.gradients[:, index]), {"sigma": level.sigma, "pixel": list(pixel)}
            sides = centred_square(maps, pixel, self.fraction).astype(float)
            sides[~maps.any((1, 2))] = np.nan  # what looks at nothing is not local
            yield Measured("square", estimate(sides), at | {"fraction": self.fraction})
            yield Measured("energy", estimate((maps**2).sum((1, 2))), at)

    def _condition_rows(self, level: Level) -> Iterable[Measured]:
        at = {"sigma": level.sigma}
        yield Measured("near_share", self._near_share([level]), at | {"cells": self.radius, "grid": self.grid})
        shares = own_share(level.influences, self.places)
        acts = ~np.isnan(shares).all(1)  # samples in which a condition does
        own = np.nanmean(shares[acts], axis=1) if acts.any() else np.array([np.nan])
        yield Measured("own_share", estimate(resampled(own)), at)
        for row, column in self.pixels:
            for k, values in enumerate(level.influences[:, :, row, column].T):
                there = at | {"pixel": [row, column], "condition": k}
                yield Measured("influence", estimate(resampled(values[~np.isnan(values)])), there)

    def _near_share(self, some: Sequence[Level]) -> Estimate:
        energies = np.stack([level.influences**2 for level in some], axis=1)
        mask = near(self.places, energies.shape[-2:], self.radius, self.grid)[:, None]
        return share(energies, energies * mask)

    def table(self) -> str:
        """A line a noise level: the side of the square at the first pixel, and the two shares."""
        by = {(row.name, row.setting["sigma"]): row.estimate for row in reversed(self.rows) if "sigma" in row.setting}
        names = [name for name in ("square", "near_share", "own_share") if any(key[0] == name for key in by)]
        lines = ["   sigma  " + "".join(f"{name:>24}" for name in names)]
        for level in self.levels:
            lines.append(f"{level.sigma:8.3f}  " + "".join(f"{by[name, level.sigma]!s:>24}" for name in names))
        if "near_share" in names:
            lines.append(f"conditional locality {self.conditional_locality}, chance {self.chance:.2f}")
        return "\n".join(lines)


def audit(
    denoiser: Denoiser,
    images: X,
    condition_sets: Sequence[ConditionSet] | None = None,
    conditioner: Conditioner | None = None,
    sigmas: Sequence[float] | None = None,
    pixels: Sequence[Pixel] | None = None,
    states: States = "noised",
    seed: int = 0,
    radius: float = RADIUS,
    grid: int = GRID,
) -> Audit:
    """Measure `denoiser` at each of `sigmas` (nine falling levels), at `pixels` (the centre).

    images: clean images in the denoiser's own x; with states="trajectory" only their number and shape are used.
    condition_sets: one an image; the conditions are places (u, v) in [0, 1]^2.
    states: "noised" images, or the model's own "trajectory" from noise.
    """
    if not images.is_floating_point() or images.dtype == torch.bfloat16 or not len(images):
        raise InputError(
            f"audit: {len(images)} images of {images.dtype}; give some in the denoiser's own x, floats that numpy knows"
        )
    chosen = torch.as_tensor(noise_levels(9)[:-1] if sigmas is None else sigmas, dtype=images.dtype)
    if states not in get_args(States) or not (chosen > 0).all() or not len(chosen):
        raise InputError(f"audit: states is one of {', '.join(get_args(States))}, not {states!r}; sigmas are above 0")
    asked: Sequence[ConditionSet] = [()] * len(images)
    if conditioner is not None and condition_sets is not None and len(condition_sets):
        asked = condition_sets
    if len(asked) != len(images):
        raise InputError(f"audit: {len(asked)} condition sets for {len(images)} images")
    places = places_of(asked)
    centre = images.shape[2] // 2, images.shape[3] // 2
    spots = (centre,) if pixels is None else tuple((int(row), int(column)) for row, column in pixels)
    at = states_at(denoiser, images, chosen, cond_of(conditioner, asked, images, seed), states, seed)
    measured = [
        measure(denoiser, x, float(s), spots, conditioner, asked, seed) for x, s in zip(at, chosen, strict=True)
    ]
    return Audit(tuple(measured), spots, places, radius, grid)


def measure(
    denoiser: Denoiser,
    x: X,
    sigma: float,
    pixels: Sequence[Pixel],
    conditioner: Conditioner | None,
    condition_sets: Sequence[ConditionSet],
    seed: int = 0,
    memory: int = 2**28,
) -> Level:
    """Both equations at one noise level, sample by sample."""
    cond = cond_of(conditioner, condition_sets, x, seed)
    gradients = pixel_gradients(denoiser, x, sigma, cond, pixels, memory)
    with torch.no_grad():
        x0 = denoiser(x, levels(sigma, x), cond)
    maps = influences(denoiser, x, sigma, conditioner, condition_sets, seed) if conditioner else [x[0, :0]] * len(x)
    if not all(bool(found.isfinite().all()) for found in (gradients, x0, *maps)):
        raise InputError(
            f"the denoiser gives numbers that are not finite at sigma {sigma:g}: there is nothing to measure"
        )
    most = max(len(own) for own in maps)
    filled = np.full((len(x), most, *x.shape[2:]), np.nan)
    for i, own in enumerate(maps):
        filled[i, : len(own)] = own.cpu()
    return Level(sigma, x0.cpu().numpy(), gradients.cpu().numpy(), filled)


def states_at(
    denoiser: Denoiser, images: X, sigmas: Float[Tensor, " levels"], cond: Tensor | None, states: States, seed: int
) -> Float[Tensor, "levels batch channel height width"]:
    """The noisy images at each level; image i has the noise of seed + i. A trajectory begins where sampling does."""
    seeds = range(seed, seed + len(images))
    if states == "trajectory":
        if not (sigmas.diff() < 0).all():
            raise InputError("a trajectory passes through falling noise levels; give the sigmas in that order")
        above = noise_levels(9)[:-1].to(sigmas)
        above = above[above > 1.01 * sigmas[0]]
        start = noise(seeds, images.shape[1:]).to(images)
        return trajectory(denoiser, start, torch.cat([above, sigmas]), cond)[len(above) :]
    return torch.stack([noised(images, float(sigma), seeds) for sigma in sigmas])


def cond_of(
    conditioner: Conditioner | None, condition_sets: Sequence[ConditionSet], x: X, seed: int
) -> Float[Tensor, "batch features"] | None:
    return None if conditioner is None else conditioner(condition_sets, seed).to(x)


def places_of(condition_sets: Sequence[ConditionSet]) -> Float[np.ndarray, "sample condition 2"]:
    """Where the conditions are, filled up with NaN."""
    places = np.full((len(condition_sets), max(map(len, condition_sets)), 2), np.nan)
    for i, asked in enumerate(condition_sets):
        for k, place in enumerate(asked):
            if np.shape(place) != (2,) or not np.isreal(place).all():
                raise InputError(f"the condition {place!r} is not a place (u, v): its locality in pixels is undefined")
            if not all(0 <= part <= 1 for part in place):
                raise InputError(f"the place {place!r} is not in [0, 1]^2; give fractions of the width and the height")
            places[i, k] = place
    return places
