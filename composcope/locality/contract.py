"""What can be wrong with what somebody else made, each in one sentence."""

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, ConditionSet, Denoiser, X, cond_of, plain_sets
from composcope.diffusion.sample import noise_levels
from composcope.errors import InputError

STATES = ("noised", "trajectory")
Places = Float[np.ndarray, "sample condition 2"]


def condition_names(condition_set: ConditionSet) -> tuple[str, ...]:
    """Conditions as people write them, a place as 0.65,0.65; the second of two alike numbered."""
    found: list[str] = []
    for condition in condition_set:
        text = str(condition)
        if is_place(condition):
            text = ",".join(f"{part:g}" for part in condition)
        again = sum(name.partition(" #")[0] == text for name in found)
        found.append(f"{text} #{again + 1}" if again else text)
    return tuple(found)


def is_place(condition: Any) -> bool:
    """A pair of numbers."""
    pair = isinstance(condition, tuple | list | np.ndarray) and len(condition) == 2
    return pair and all(isinstance(part, int | float | np.number) for part in condition)


def image_cond(conditioner: Any, condition_sets: Sequence[ConditionSet], x: X, seed: int) -> Cond:
    """cond of each image, if the conditioner gives as many rows as there are images."""
    return None if conditioner is None else cond_of(conditioner, condition_sets, seed).to(x)


def places_of(condition_sets: Sequence[ConditionSet], conditioner: Any) -> Places | None:
    """Where the conditions are, filled up with NaN; None if they are not places."""
    asked = [condition for some in condition_sets for condition in some]
    has_places = getattr(conditioner, "has_places", all(is_place(condition) for condition in asked))
    if not asked or not has_places:
        return None
    places = np.full((len(condition_sets), max(map(len, condition_sets)), 2), np.nan)
    for i, some in enumerate(condition_sets):
        for k, place in enumerate(some):
            if not is_place(place):
                raise InputError(f"the condition {place!r} is not a place (u, v)")
            if not all(0 <= part <= 1 for part in place):
                advice = "give fractions of width and height"
                raise InputError(f"the place {place!r} is not in [0, 1]^2; {advice}")
            places[i, k] = place
    return places


def check_images(images: Any) -> None:
    if not isinstance(images, Tensor) or images.ndim != 4:
        found = list(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise InputError(f"images are {found}, not a tensor [batch, channel, height, width]")
    if not images.is_floating_point() or images.dtype == torch.bfloat16 or not images.numel():
        raise InputError(
            f"{len(images)} images of {images.dtype}; give some in the denoiser's own x, "
            "floats that numpy knows"
        )
    if not bool(images.isfinite().all()):
        raise InputError("the images hold numbers that are not finite")


def check_pixels(pixels: Any) -> tuple[tuple[int, int], ...]:
    try:
        index = operator.index  # and not int, for which half a pixel is the first
        return tuple((index(row), index(column)) for row, column in pixels)
    except (TypeError, ValueError):
        raise InputError(f"pixels are a list of (row, column), not {pixels!r}") from None


def levels_of(sigmas: Any, states: str, images: X) -> Float[Tensor, " levels"]:
    """The noise levels of an audit, nine if none are given."""
    given = noise_levels(9)[:-1] if sigmas is None else sigmas
    try:
        levels = torch.as_tensor(given, dtype=images.dtype)
    except (TypeError, ValueError, RuntimeError):
        levels = images.new_zeros(0)
    check_levels(levels, states)
    return levels


def check_levels(sigmas: Tensor, states: str) -> None:
    if states not in STATES:
        raise InputError(f"states is one of {', '.join(STATES)}, not {states!r}")
    good = (sigmas > 0) & sigmas.isfinite()
    if sigmas.ndim != 1 or not len(sigmas) or not bool(good.all()):
        raise InputError("sigmas are a list of noise levels above 0, at least one")
    if states == "trajectory" and not bool((sigmas.diff() < 0).all()):
        raise InputError(
            "a trajectory passes through falling noise levels; give the sigmas in that order"
        )


def check_seed_and_radius(seed: Any, radius: Any) -> tuple[int, float]:
    """Both as numbers of Python, which rows can hold."""
    if not isinstance(seed, int | np.integer):
        raise InputError(f"seed is a whole number, not {seed!r}")
    if not isinstance(radius, int | float | np.floating) or not radius > 0:
        raise InputError(f"radius is a part of the image's side, above 0, not {radius!r}")
    return int(seed), float(radius)


def check_conditions(
    denoiser: Denoiser, conditioner: Any, condition_sets: Sequence[ConditionSet] | None, count: int
) -> tuple[Any, Sequence[ConditionSet]]:
    """The conditioner and one condition set an image; with nothing asked, None and empty sets."""
    if condition_sets is None:
        if conditioner is not None:
            raise InputError(
                "a conditioner and nothing asked; give a condition set for each image: "
                "condition_sets=, on a command line --asked"
            )
        return None, [()] * count
    condition_sets = plain_sets(condition_sets)
    if not isinstance(condition_sets, Sequence) or isinstance(condition_sets, str):
        kind = type(condition_sets).__name__
        raise InputError(f"condition sets are a list, one set for each image, not {kind}")
    if len(condition_sets) != count:
        raise InputError(f"{len(condition_sets)} condition sets for {count} images")
    for asked in condition_sets:
        check_set(asked)
    found = getattr(denoiser, "conditioner", None) if conditioner is None else conditioner
    if found is None:
        raise InputError(
            "condition sets without a conditioner that makes cond of them; give conditioner="
        )
    check_conditioner(found)
    return found, condition_sets


def why_kept(conditioner: Any, condition_sets: Sequence[ConditionSet], seed: int) -> str | None:
    """What a conditioner says that can leave no condition out, such as classes without a null."""
    try:
        for asked in condition_sets[: 0 if conditioner is None else 1]:
            conditioner.left_out(asked, seed)
    except InputError as error:
        return f"{error}: only pixels were measured"
    return None


def check_set(asked: Any) -> None:
    if isinstance(asked, str) or not isinstance(asked, Sequence | np.ndarray):
        raise InputError(
            f"a condition set is a sequence of conditions; put {asked!r} in brackets: ({asked!r},)"
        )


def check_conditioner(found: Any) -> None:
    if inspect.isclass(found):
        raise InputError(f"the conditioner {found.__name__} is a class; make one of it")
    for name in ("left_out", "features"):
        if not hasattr(found, name):
            raise InputError(f"the conditioner {type(found).__name__} has no {name}")
