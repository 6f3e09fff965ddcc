"""The locality of a model: one measurement for commands, the study, the explorer and notebooks.

    rows = locality(load("exp1"))     # figures 2, 10 and 12 are drawn from them and the maps

A noise level once measured is kept, so a measurement that was stopped goes on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import ConditionSet, Denoiser, Drawer, X
from composcope.diffusion.sample import noise_levels
from composcope.errors import InputError
from composcope.locality import contract
from composcope.locality.audit import (
    Audit,
    Level,
    Question,
    asked_words,
    images_words,
    level_maps,
    states_at,
)
from composcope.locality.jacobian import Pixel
from composcope.progress import track
from composcope.results import Row
from composcope.results.arrays import read_arrays, write_arrays

K_ASKED = 4  # conditions, as in the paper's figures 2 and 10
LEVELS = 9
DIAGONAL = ((0.5, 0.5), (0.25, 0.25), (0.75, 0.75))  # (u, v), where no places are asked
MAPS = "maps.npz"  # what figure 2 is drawn from


def locality(
    model: Drawer,
    condition_set: ConditionSet | None = None,
    levels: int = LEVELS,
    num: int = 16,
    states: str = "trajectory",
    seed: int = 0,
    images: X | None = None,
    keep: Path | None = None,
    pixels: Sequence[Pixel] | None = None,
    memory: int = 2**28,
    device: str = "cpu",
) -> list[Row]:
    """Where the scores of a model look, at `levels` noise levels from 80 down to 0.002.

    condition_set: what every sample is asked; else the usual four of the model's conditioner.
    num: samples at each level.
    images: clean images in the model's x to put noise on, for states="noised".
    keep: a folder for the maps of each noise level; those that are there are not measured again.
    pixels: to look at, (row, column); else those of the asked places and the centre.
    memory: bytes for the activations of one backward pass."""
    if levels < 1 or num < 1:
        raise InputError("locality: levels and num are at least 1")
    if states == "noised" and images is None:
        raise InputError('locality: states="noised" needs images to put noise on')
    sigmas = noise_levels(levels)[:-1]
    contract.check_levels(sigmas, states)
    clean = (torch.zeros(num, *model.shape) if images is None else images[:num]).to(device)
    contract.check_images(clean)
    asked, way = asked_of(model, condition_set, seed)
    alike = None if asked is None else [asked] * len(clean)
    conditioner, sets = contract.check_conditions(model, None, alike, len(clean))
    places = contract.places_of(sets, conditioner)
    spots = tuple(pixels) if pixels is not None else pixels_at(places, model.shape[1:])
    about = {**model.about, "states": states, "seed": seed, "asked": way}
    about["setting"] = setting_of(way, sets, levels, clean if states == "noised" else None)

    def noisy() -> Float[Tensor, "levels batch channel height width"]:
        cond = contract.image_cond(conditioner, sets, clean, seed)
        return states_at(model, clean, sigmas, cond, states, seed)

    # All that a kept noise level depends on.
    origin = {
        **about,
        "levels": levels if states == "trajectory" else None,
        "num": len(clean),
        "shape": list(clean.shape[1:]),
        "conditions": list(contract.condition_names(sets[0])),
        "pixels": [list(pixel) for pixel in spots],
    }
    question = Question(conditioner, sets, spots, seed, memory)
    found = all_levels(model, sigmas, noisy, question, keep, origin)
    audit = Audit(found, spots, sets, places, about=about)
    if keep is not None:
        write_arrays(keep / MAPS, about, maps_of(audit))
    return audit.rows()


def asked_of(
    model: Drawer, condition_set: ConditionSet | None, seed: int
) -> tuple[ConditionSet | None, str | None]:
    """What is asked, and the way it was chosen; nothing of a model without a conditioner."""
    conditioner = model.conditioner
    if condition_set is not None:
        return tuple(condition_set), "given"
    if conditioner is None:
        return None, None
    if not hasattr(conditioner, "ask"):
        name = type(conditioner).__name__
        raise InputError(f"{name} does not choose conditions itself; give a condition_set")
    K = min(K_ASKED, conditioner.most)
    return conditioner.ask(K, 1, seed)[0], conditioner.ways[0]


def setting_of(
    way: str | None, asked: Sequence[ConditionSet], levels: int, noised_images: X | None
) -> str | None:
    """What else tells this measurement from the usual one, in words."""
    words = []
    if way == "given":
        words.append(asked_words(asked))
    if levels != LEVELS:
        words.append(f"{levels} noise levels")
    if noised_images is not None:
        words.append(images_words(noised_images))
    return "; ".join(words) or None


def pixels_at(places: contract.Places | None, size: Sequence[int]) -> tuple[Pixel, ...]:
    """The pixel (row, column) of each place, and the centre; without places, of DIAGONAL."""
    where = DIAGONAL if places is None else [*places[0].tolist(), (0.5, 0.5)]
    return tuple(dict.fromkeys(pixel_of(place, size) for place in where))


def pixel_of(place: Sequence[float], size: Sequence[int]) -> Pixel:
    """The pixel (row, column) in which a place (u, v) lies."""
    u, v = place
    height, width = size
    return min(int(v * height), height - 1), min(int(u * width), width - 1)


def all_levels(
    denoiser: Denoiser,
    sigmas: Sequence[float] | Tensor,
    noisy: Callable[[], Float[Tensor, "levels batch channel height width"]],
    question: Question,
    keep: Path | None,
    origin: Mapping[str, Any],
    gradients_at: Sequence[int] | None = None,
    what: str | None = None,
) -> tuple[Level, ...]:
    """Every noise level: read if it is kept, else measured at the states of `noisy`, and kept.

    gradients_at: the indices of the levels at which gradients are taken, which cost most; else all.
    """
    states = None
    found = []
    name = what or str(origin.get("run") or "locality")
    for index, sigma in track(list(enumerate(map(float, sigmas))), f"{name}: noise levels"):
        path = None if keep is None else keep / f"sigma-{sigma:.4f}.npz"
        made_from = {**origin, "sigma": round(sigma, 6)}
        if path is not None and path.exists():
            found.append(level_from(path, made_from))
            continue
        if states is None:
            states = noisy()
        here = question
        if gradients_at is not None and index not in gradients_at:
            here = replace(question, pixels=())
        level = level_maps(denoiser, states[index], sigma, here)
        if path is not None:
            arrays = {name: np.asarray(value) for name, value in asdict(level).items()}
            write_arrays(path, made_from, arrays)
        found.append(level)
    return tuple(found)


def level_from(path: Path, made_from: Mapping[str, Any]) -> Level:
    arrays = read_arrays(path, made_from)
    try:
        return Level(float(arrays.pop("sigma")), **arrays)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"does not hold a measured noise level ({error})"
        raise InputError(f"{path} {reason}; remove it to measure again") from None


def maps_of(audit: Audit) -> dict[str, np.ndarray]:
    """Means over samples, small enough to ship beside rows: what `report.locality.heatmaps` draws.

    Only of the levels with gradients, if gradients were not taken at all of them. Gradients are in
    units of the greatest of their map, which half precision can hold at every noise level."""
    levels = [level for level in audit.levels if level.gradients.shape[1]] or audit.levels
    places = np.zeros((0, 2)) if audit.places is None else audit.places[0]
    gradients = np.stack([level.gradients.mean(0) for level in levels])
    greatest = gradients.max((-2, -1), keepdims=True)
    influences = np.stack([level.influences.mean(0) for level in levels])
    return {
        "sigmas": np.array([level.sigma for level in levels]),
        "pictures": np.stack([level.picture for level in levels]),
        "gradients": (gradients / np.where(greatest > 0, greatest, 1)).astype(np.float16),
        "influences": influences.astype(np.float16),
        "pixels": np.array(audit.pixels, int).reshape(-1, 2),
        "places": places,
        "conditions": np.array(audit.conditions, dtype=str),
    }
