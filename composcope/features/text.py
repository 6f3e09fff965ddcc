"""A text-to-image model, measured: features of its concepts, then what a latent looks at and which
words act on it (section G).

    measure_text(model, prompts, TextSettings(), seed=0, keep=folder, run="sdxl")

The second is the audit of the locality room with the words of a prompt as conditions, along the
guided way from noise to image."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.guidance import Guided
from composcope.diffusion.sample import walk
from composcope.errors import InputError
from composcope.features.prompts import Prompts, TextSettings
from composcope.features.sdxl import SDXL
from composcope.features.text_features import text_features
from composcope.features.words import Words, dominant, thirds
from composcope.locality.audit import Audit, Level, Question
from composcope.locality.measure import MAPS, all_levels, maps_of, pixel_of
from composcope.results import Row, resampled, row, write_arrays
from composcope.results import mean as sample_mean
from composcope.results.estimate import estimate

TIMES = 10  # at which the influence of words is measured; gradients at the first, middle and last


def measure_text(
    model: SDXL, asked: Prompts, how: TextSettings, seed: int, keep: Path, run: str
) -> tuple[list[Row], list[Row], Audit]:
    """Rows of the features of all concepts, unless one prompt is given; rows of what places and
    words do, in one image of that prompt if it is given; and the audit they come from."""
    rows = []
    if how.prompt is None:
        rows = text_features(model, asked, how, seed, keep / "features", run)
    found = prompt_locality(model, asked, how, seed, keep / "places", run)
    write_arrays(keep / MAPS, found.about, maps_of(found))
    return rows, [*found.rows(), *word_rows(found, how.prompt or asked.locality)], found


def prompt_locality(
    model: SDXL, asked: Prompts, how: TextSettings, seed: int, keep: Path, run: str
) -> Audit:
    """Gradients (equation 9) at places and influences (equation 10) of every word of one prompt.

    That is the one of `how`, in one image, or the one for locality, over `how.seeds` images.
    keep: a folder for the maps of each seed and noise level; those that are there are not measured
    again."""
    prompt = how.prompt or asked.locality
    seeds = 1 if how.prompt else how.seeds
    steps = how.locality_steps
    words = Words(prompt, model.encode)
    if not words.all:
        raise InputError(f"the prompt {prompt!r} has no words that can be left out")
    sigmas = model.levels(steps)
    times = looked_at(steps)
    chosen = [times.index(step) for step in (0, steps // 2, steps - 1)]
    pixels = tuple(pixel_of(place, model.shape[1:]) for place in asked.places)
    about: dict[str, Any] = {"run": run, "states": "trajectory", "seed": seed}
    about["setting"] = f'"{prompt}", guidance {how.guidance:g}, {steps} steps'
    found = []
    for one in range(seed, seed + seeds):
        origin = {**about, "image": one, "pixels": [list(pixel) for pixel in pixels]}

        def noisy(one: int = one) -> Float[Tensor, "levels 1 channel height width"]:
            start = model.start([one], steps) / sigmas[0].to(model.device)
            cond = words([words.all])
            way = walk(Guided(model, how.guidance), start, cond, sigmas.to(start), solver="euler")
            return torch.stack([step.x for step in way if step.index in times])

        question = Question(words, [words.all], pixels)
        what = f"image {one - seed + 1} of {seeds}"
        at = [float(sigmas[step]) for step in times]
        folder = keep / f"seed-{one:03d}"
        found.append(all_levels(model, at, noisy, question, folder, origin, chosen, what))
    levels = tuple(merge_levels(several) for several in zip(*found, strict=True))
    return Audit(levels, pixels, [words.all] * seeds, about=about)


def looked_at(steps: int) -> list[int]:
    """Ten steps from the first to the last, and the middle one."""
    return sorted({round(i * (steps - 1) / (TIMES - 1)) for i in range(TIMES)} | {steps // 2})


def merge_levels(levels: Sequence[Level]) -> Level:
    """One noise level of several images; the picture is the first one's."""
    first = levels[0]
    gradients = np.concatenate([level.gradients for level in levels])
    influences = np.concatenate([level.influences for level in levels])
    return Level(first.sigma, first.picture, gradients, influences)


def word_rows(found: Audit, prompt: str) -> list[Row]:
    """Which words are strongest at places, how alike two of these are, and whether words act in the
    third of the width that their clause names."""
    return [*dominant_rows(found), *two_places_row(found), *third_rows(found, prompt)]


def dominant_rows(found: Audit) -> list[Row]:
    rows = []
    for level in found.levels:
        for pixel in found.pixels:
            strength = level.influences[:, :, pixel[0], pixel[1]].mean(0)
            strong = [found.conditions[k] for k in dominant(torch.from_numpy(strength))]
            where = {**found.about, "sigma": level.sigma, "pixel": pixel}
            rows.append(row("features/dominant", ", ".join(strong) or "none", **where))
    return rows


def two_places_row(found: Audit) -> list[Row]:
    """How alike two places are: the correlation of their words' influence over noise levels.

    Version 3, Figure 4: the curves are nearly identical."""
    if len(found.pixels) < 2:
        return []
    curves = []
    for row_, column in found.pixels[:2]:
        at = np.stack([level.influences[:, :, row_, column] for level in found.levels], axis=1)
        means = resampled(at.astype(float))
        curves.append(means.reshape(len(means), -1))
    alike = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*curves, strict=True)])
    return [row("features/two_places", estimate(alike, len(found.condition_sets)), **found.about)]


def third_rows(found: Audit, prompt: str) -> list[Row]:
    """Of words whose clause names a third, the share of their squared influence in it."""
    asked = list(found.condition_sets[0])
    named = dict(zip(asked, found.conditions, strict=True))
    rows = []
    for word, third in thirds(prompt).items():
        for level in found.levels:
            shares = in_third(level.influences[:, asked.index(word)].astype(float), third)
            where = {**found.about, "sigma": level.sigma, "condition": named[word], "chance": 1 / 3}
            rows.append(row("features/share_in_third", sample_mean(shares), **where))
    return rows


def in_third(influence: Float[np.ndarray, "*rest h w"], third: int) -> Float[np.ndarray, "*rest"]:
    """The share of squared influence in a third; a column on its edge counts with its part."""
    width = influence.shape[-1]
    column = np.arange(width)
    part = np.minimum(column + 1, (third + 1) * width / 3) - np.maximum(column, third * width / 3)
    energy = np.square(influence).sum(-2)
    return (energy * part.clip(0, 1)).sum(-1) / energy.sum(-1)
