"""A few of the answers, for the eye."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from composcope.diffusion.denoiser import ConditionSet, Drawer, cond_of
from composcope.diffusion.sample import noise, noise_levels, streams, walk
from composcope.evaluation.answers import APART, Answers, Images
from composcope.evaluation.matching import match
from composcope.results.samples import K_SHOWN, Record, Samples
from composcope.scenes.parts import SumOfParts

K_WALKED = 6
SHOWN_EACH = 4
SHOWN_OTHERS = 2  # of every other K


def samples_of(
    model: Drawer,
    answers: Mapping[int, Answers],
    tolerance: float,
    setting: Mapping[str, Any],
    solver: str,
    device: torch.device | str,
    before: Samples | None = None,
) -> Samples:
    """The first images of each K, and how the first of K = 6 came out of the noise, which is not
    done again if it was `before`."""
    some = [one.first(SHOWN_EACH if K in K_SHOWN else SHOWN_OTHERS) for K, one in answers.items()]
    asked = [conditions for one in some for conditions in one.asked]
    found = [things for one in some for things in one.found]
    pairs = zip(asked, found, strict=True)
    met = [list(match(model.conditioner, *pair, tolerance).met) for pair in pairs]
    places = [[(thing.x, thing.y) for thing in things] for things in found]
    K = K_WALKED if K_WALKED in answers else max(answers)
    conditions = answers[K].asked[0]
    walked = plain_conditions(model.conditioner, conditions)
    if before is not None and before.record.walked == walked:
        frames, sigmas = before.frames, before.sigmas
    else:
        frames, sigmas = denoising(model, conditions, K, setting, solver, device)
    return Samples(
        about={**setting, "tolerance": tolerance if model.conditioner.has_places else None},
        images=np.concatenate([one.images for one in some]),
        record=Record(
            [plain_conditions(model.conditioner, one) for one in asked], met, places, walked
        ),
        frames=frames,
        sigmas=sigmas,
    )


def plain_conditions(conditioner: SumOfParts, conditions: ConditionSet) -> list:
    """Conditions as they are kept: places as they are, all others as words."""
    return list(conditions) if conditioner.has_places else [str(one) for one in conditions]


def denoising(
    model: Drawer,
    conditions: ConditionSet,
    K: int,
    setting: Mapping[str, Any],
    solver: str,
    device: torch.device | str,
) -> tuple[Images, np.ndarray]:
    """The denoised image at every noise level on the way to the first image of K; the levels."""
    seed = setting["seed"] + APART * K
    x = noise([seed], model.shape).to(device)
    cond = cond_of(model.conditioner, [conditions], seed).float().to(device)
    levels = noise_levels(setting["steps"]).to(device)
    steps = list(walk(model, x, cond, levels, solver, streams([seed])))
    frames = np.concatenate([model.decode(step.x0.cpu()) for step in steps])
    return frames, np.array([float(step.sigma) for step in steps])
