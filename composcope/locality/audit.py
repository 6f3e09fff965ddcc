"""The whole measurement of one denoiser: maps at each noise level, numbers, a table, a figure.

    found = audit(denoiser, images, condition_sets, conditioner)
    print(found.table())
    found.plot().savefig("audit.png")

Any denoiser will do. Without a conditioner only pixels are measured; a condition may be anything
that the conditioner can leave out, and the share of influence near a place is measured where
conditions are places."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from composcope.diffusion.denoiser import Cond, ConditionSet, Denoiser, X, check_denoiser, innermost
from composcope.diffusion.pixels import stretched
from composcope.diffusion.sample import denoised, noise, noise_levels
from composcope.errors import InputError
from composcope.locality import contract, profile
from composcope.locality.influence import effects, noised, trajectory, without_each_denoised
from composcope.locality.jacobian import Pixel, pixel_gradients
from composcope.locality.table import NOTHING_ASKED, table_of
from composcope.results import Estimate, Row, digest, resampled, row
from composcope.results import mean as sample_mean
from composcope.results.estimate import estimate


@dataclass(frozen=True)
class Level:
    """What was measured at one noise level; conditions that a sample does not have are NaN."""

    sigma: float
    picture: UInt8[np.ndarray, "rows columns 3"]  # the first sample, denoised and decoded
    gradients: Float[np.ndarray, "sample pixel height width"]  # equation 9
    influences: Float[np.ndarray, "sample condition height width"]  # equation 10


@dataclass(frozen=True)
class Audit:
    """What was found: `levels` hold the maps; `rows()`, `table()` and `plot()` show them."""

    levels: tuple[Level, ...]
    pixels: tuple[Pixel, ...]
    condition_sets: Sequence[ConditionSet]
    places: contract.Places | None = None  # filled up with NaN; None where conditions have none
    radius: float = profile.RADIUS
    about: Mapping[str, Any] = field(default_factory=dict)  # of the rows: run, seed, ...
    note: str = NOTHING_ASKED  # why only pixels were measured, if so

    @property
    def conditions(self) -> tuple[str, ...]:
        """Their own names if all images are asked the same, else their numbers."""
        names = [contract.condition_names(asked) for asked in self.condition_sets]
        longest = max(names, key=len)
        if all(asked == longest for asked in names):
            return longest
        return tuple(str(k) for k in range(len(longest)))

    @property
    def chance(self) -> float:
        """Of conditional locality; NaN where conditions have no places."""
        if self.places is None:
            return float("nan")
        return profile.near_chance(self.places, self.radius)

    @property
    def conditional_locality(self) -> Estimate:
        """The scalar of `profile`, over all levels and samples; NaN if no condition acts."""
        return self.near_share(self.levels)

    @property
    def overlap(self) -> tuple[Estimate, float]:
        """How far conditions act on the same pixels, over all levels, and its chance."""
        return self.overlap_of(self.levels)

    # Numbers.

    def rows(self) -> list[Row]:
        return list(self._rows)

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        found = [one for level in self.levels for one in self.pixel_rows(level)]
        if not self.conditions:
            return tuple(found)
        for level in self.levels:
            found += self.condition_rows(level)
        found.append(self.overlap_row(self.levels))
        if self.places is not None:
            found.append(self.near_row("conditional_locality", self.levels))
        return tuple(found)

    def row(self, what: str, value: Estimate, **coordinates: Any) -> Row:
        """`about` wins: the radius of an intervention tells rows apart, nearness does not."""
        return row(f"locality/{what}", value, **{"K": self.K, **coordinates, **self.about})

    @property
    def K(self) -> int | None:
        """The number of conditions, if all images are asked for as many."""
        counts = {len(asked) for asked in self.condition_sets}
        return counts.pop() if len(counts) == 1 else None

    def pixel_rows(self, level: Level) -> Iterator[Row]:
        """How far each pixel looks, and how much."""
        n = len(level.gradients)
        for maps, pixel in zip(level.gradients.swapaxes(0, 1), self.pixels, strict=False):
            means = resampled(maps.astype(float))
            sides = profile.centred_square(means, pixel).astype(float)
            sides[~means.any((1, 2))] = np.nan  # what looks at nothing is not local
            where = {"sigma": level.sigma, "pixel": pixel}
            yield self.row("square", estimate(sides, n), **where)
            yield self.row("energy", estimate((means**2).sum((1, 2)), n), **where)

    def condition_rows(self, level: Level) -> Iterator[Row]:
        """Where conditions act, and how much at each of the pixels."""
        if self.places is not None:
            yield self.near_row("near_share", [level], sigma=level.sigma)
            shares = profile.own_share(level.influences, self.places)
            acts = ~np.isnan(shares).all(1)  # samples in which a condition does
            own = np.nanmean(shares[acts], axis=1) if acts.any() else np.array([np.nan])
            yield self.row("own_share", sample_mean(own), sigma=level.sigma)
        yield self.overlap_row([level], sigma=level.sigma)
        for pixel in self.pixels:
            at = level.influences[:, :, pixel[0], pixel[1]].T
            for name, values in zip(self.conditions, at, strict=True):
                where = {"sigma": level.sigma, "pixel": pixel, "condition": name}
                yield self.row("influence", sample_mean(values[~np.isnan(values)]), **where)

    def near_row(self, what: str, some: Sequence[Level], **where: Any) -> Row:
        near_by = {"radius": self.radius, "chance": round(self.chance, 4)}
        return self.row(what, self.near_share(some), **near_by, **where)

    def overlap_row(self, some: Sequence[Level], **where: Any) -> Row:
        value, chance = self.overlap_of(some)
        known = None if np.isnan(chance) else round(chance, 4)
        return self.row("overlap", value, chance=known, **where)

    def near_share(self, some: Sequence[Level]) -> Estimate:
        if self.places is None:
            return Estimate(float("nan"))
        energies = np.stack([level.influences.astype(float) ** 2 for level in some], axis=1)
        mask = profile.near(self.places, energies.shape[-2:], self.radius)[:, None]
        return profile.energy_share(energies, energies * mask)

    def overlap_of(self, some: Sequence[Level]) -> tuple[Estimate, float]:
        values, chances = profile.overlaps(np.stack([level.influences for level in some], axis=2))
        known = ~np.isnan(values)
        if not known.any():
            return Estimate(float("nan")), float("nan")
        return sample_mean(values[known]), float(chances[known].mean())

    # For people.

    def table(self) -> str:
        return table_of(self._rows, self.note)

    def plot(self) -> Any:
        """A matplotlib figure: the image, what pixels look at, where conditions act, over noise."""
        from composcope.locality.figure import figure_of  # matplotlib takes a second to load

        return figure_of(self)


def audit(
    denoiser: Denoiser,
    images: X,
    condition_sets: Sequence[ConditionSet] | None = None,
    conditioner: Any = None,
    sigmas: Sequence[float] | None = None,
    pixels: Sequence[Pixel] | None = None,
    states: str = "noised",
    seed: int = 0,
    radius: float = profile.RADIUS,
) -> Audit:
    """Measure whether the score of `denoiser` is local, in pixels and in conditions.

    images: clean images in the denoiser's own x; with states="trajectory" only their number and
        shape are used.
    condition_sets: one for each image. Places are (u, v) in [0, 1]^2; other conditions are whatever
        the conditioner takes.
    conditioner: that of the denoiser itself, if it has one and none is given. If it can leave no
        condition out (classes without a null), pixels alone are measured, and the table says so.
    sigmas: the noise levels; if none are given, nine falling ones.
    pixels: the pixels to look at, (row, column); if none are given, the centre.
    states: "noised" images, or the model's own "trajectory" from noise."""
    check_denoiser(denoiser, "audit")
    contract.check_images(images)
    images = images.detach()
    chosen = contract.levels_of(sigmas, states, images)
    seed, radius = contract.check_seed_and_radius(seed, radius)
    given = condition_sets
    conditioner, asked = contract.check_conditions(denoiser, conditioner, given, len(images))
    places = contract.places_of(asked, conditioner)
    if pixels is None:
        pixels = [(images.shape[2] // 2, images.shape[3] // 2)]
    spots = contract.check_pixels(pixels)
    cond = contract.image_cond(conditioner, asked, images, seed)
    at = states_at(denoiser, images, chosen, cond, states, seed)
    note = contract.why_kept(conditioner, asked, seed)
    question = Question(conditioner, asked, spots, seed, leave_out=note is None)
    every = zip(at, chosen, strict=True)
    levels = tuple(level_maps(denoiser, x, float(sigma), question) for x, sigma in every)
    about = {**getattr(denoiser, "about", {}), "states": states, "seed": seed}
    about["asked"] = "given" if any(map(len, asked)) else None
    setting = [*filter(None, [about.get("setting")])]
    setting += setting_of(asked, sigmas, images if states == "noised" else None)
    if conditioner is not None and conditioner is not getattr(denoiser, "conditioner", None):
        setting.append(conditioner_words(conditioner, cond))
    about["setting"] = "; ".join(setting) or None
    if note is not None:
        return Audit(levels, spots, [()] * len(images), None, radius, about, note)
    return Audit(levels, spots, asked, places, radius, about)


def setting_of(
    asked: Sequence[ConditionSet], sigmas: Sequence[float] | None, noised_images: X | None
) -> list[str]:
    """What tells two audits of one denoiser apart, in words."""
    words = []
    if any(map(len, asked)):
        words.append(asked_words(asked))
        if sigmas is not None:  # conditions have rows over all levels
            words.append("noise levels " + " ".join(f"{float(sigma):g}" for sigma in sigmas))
    if noised_images is not None:
        words.append(images_words(noised_images))
    return words


def asked_words(asked: Sequence[ConditionSet]) -> str:
    """The conditions, where all images are asked for the same; else what changes with them."""
    names = [contract.condition_names(some) for some in asked]
    alike = len(set(names)) == 1
    return f"asked for {' '.join(names[0]) if alike else digest(repr(names).encode())}"


def conditioner_words(conditioner: Any, cond: Cond) -> str:
    """A conditioner that is not the denoiser's own, by its name and what it says."""
    name = getattr(conditioner, "__name__", type(conditioner).__name__)
    said = b"" if cond is None else cond.float().cpu().contiguous().numpy().tobytes()
    return f"conditioner {name} {digest(said)}"


def images_words(images: X) -> str:
    return f"on images {digest(images.float().cpu().contiguous().numpy().tobytes())}"


@dataclass(frozen=True)
class Question:
    """What is looked at, at every noise level; conditions are left out where that can be done."""

    conditioner: Any
    condition_sets: Sequence[ConditionSet]
    pixels: Sequence[Pixel]
    seed: int = 0
    memory: int = 2**28
    leave_out: bool = True


def level_maps(denoiser: Denoiser, x: X, sigma: float, question: Question) -> Level:
    """Both equations at one noise level, sample by sample; the first alone if none is left out."""
    asked = question.conditioner, question.condition_sets
    cond = contract.image_cond(*asked, x, question.seed)
    with torch.no_grad():
        x0 = denoised(denoiser, x, torch.tensor(sigma).to(x), cond)
    gradients = x.new_zeros(len(x), 0, *x.shape[2:])
    if question.pixels:
        gradients = pixel_gradients(denoiser, x, sigma, cond, question.pixels, question.memory)
    maps = [x[0, :0]] * len(x)
    if question.conditioner is not None and question.leave_out:
        every = without_each_denoised(denoiser, x, sigma, *asked, question.seed)
        maps = [effects(x0) for x0 in every]
    if not all(bool(found.isfinite().all()) for found in (gradients, *maps)):
        where = f"not finite at sigma {sigma:g}"
        raise InputError(f"the gradients or influences of the denoiser are {where}")
    picture = decoder_of(denoiser)(x0[:1])[0]
    return Level(sigma, picture, gradients.float().cpu().numpy(), filled_up(maps, x.shape[2:]))


def filled_up(
    maps: Sequence[Tensor], size: Sequence[int]
) -> Float[np.ndarray, "sample condition height width"]:
    """The maps of samples with different numbers of conditions as one array, NaN for none."""
    most = max(len(own) for own in maps)
    filled = np.full((len(maps), most, *size), np.nan, np.float32)
    for i, own in enumerate(maps):
        filled[i, : len(own)] = own.float().cpu()
    return filled


def states_at(
    denoiser: Denoiser,
    images: X,
    sigmas: Float[Tensor, " levels"],
    cond: Cond,
    states: str,
    seed: int,
) -> Float[Tensor, "levels batch channel height width"]:
    """Image i has the noise of seed + i. A trajectory begins where sampling does."""
    seeds = range(seed, seed + len(images))
    if states == "noised":
        return torch.stack([noised(images, float(sigma), seeds) for sigma in sigmas])
    # The walk starts at 80 however low the first level is, or its states would not be the model's.
    above = noise_levels(9)[:-1].to(sigmas)
    above = above[above > 1.01 * sigmas[0]]
    start = noise(seeds, images.shape[1:]).to(images)
    return trajectory(denoiser, start, torch.cat([above, sigmas]), cond)[len(above) :]


def decoder_of(denoiser: Denoiser) -> Callable[[X], np.ndarray]:
    """How x0 becomes a picture: as the innermost denoiser says, if it does."""
    return getattr(innermost(denoiser), "decode", stretched)
