"""What one condition does to every pixel, and the noisy images at which we ask.

    I_k(y, x) = || D(x, sigma, C)[y, x] - D(x, sigma, C without k)[y, x] ||_2    (section F, eq. 10)

The norm is over colour channels; forward passes only. Conditions may be anything that can be left
out: places, colours, classes, words."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import (
    Cond,
    Conditioner,
    ConditionSet,
    Conds,
    Denoiser,
    X,
    check_denoiser,
    checked_rows,
    plain_sets,
)
from composcope.diffusion.sample import noise, walk
from composcope.locality.contract import check_conditioner, check_set
from composcope.locality.jacobian import Sigma, image_levels


def influence(
    denoiser: Denoiser,
    x: X,
    sigma: Sigma,
    conditioner: Conditioner,
    condition_set: ConditionSet,
    seed: int = 0,
) -> Float[Tensor, "condition height width"]:
    """Equation 10 for every condition, averaged over the batch; image i is asked with seed + i."""
    check_denoiser(denoiser, "influence")
    check_conditioner(conditioner)
    at = image_levels(sigma, x)
    sets = plain_sets([condition_set] * len(x))
    check_set(sets[0])
    every = without_each_denoised(denoiser, x, at, conditioner, sets, seed)
    return torch.stack([effects(x0) for x0 in every]).mean(0)


def effects(x0: Float[Tensor, "choices channel height width"]) -> Float[Tensor, "k height width"]:
    """Equation 10 of images denoised with the whole condition set, then without each of it."""
    return (x0[:1] - x0[1:]).norm(dim=1)


@torch.no_grad()
def without_each_denoised(
    denoiser: Denoiser,
    x: X,
    sigma: Sigma,
    conditioner: Conditioner,
    condition_sets: Sequence[ConditionSet],
    seed: int = 0,
) -> list[Tensor]:
    """Each image denoised with its whole condition set, then without each of its conditions."""
    seeds = range(seed, seed + len(condition_sets))
    at = image_levels(sigma, x)
    conds = [without_each(conditioner, *of).to(x) for of in zip(condition_sets, seeds, strict=True)]
    counts = [len(cond) for cond in conds]
    image = torch.repeat_interleave(torch.tensor(counts, device=x.device))
    x0 = denoiser(x[image], at[image], torch.cat(conds))
    return list(x0.split(counts))


def without_each(conditioner: Conditioner, condition_set: ConditionSet, seed: int) -> Conds:
    """The rows of `left_out`, if they are as many as the contract says."""
    count = len(condition_set)
    wanted = f"for {count} conditions, not {1 + count} rows: the set, then without each"
    name = f"left_out of {type(conditioner).__name__}"
    return checked_rows(conditioner.left_out(condition_set, seed), 1 + count, name, wanted)


def noised(images: X, sigma: float, seeds: Sequence[int]) -> X:
    """Clean x with noise of level sigma, as in training; image i gets the noise of seeds[i]."""
    return images + sigma * noise(seeds, images.shape[1:]).to(images)


def trajectory(
    denoiser: Denoiser, start: X, sigmas: Float[Tensor, " levels"], cond: Cond, substeps: int = 4
) -> Float[Tensor, "levels batch channel height width"]:
    """The model's own states at `sigmas` (falling, none 0), from unit noise, by Heun steps."""
    logs = pairwise([math.log10(sigma) for sigma in sigmas.tolist()])
    ladder = [torch.logspace(*ends, substeps + 1, dtype=torch.float64)[:-1] for ends in logs]
    rungs = torch.cat([*ladder, sigmas[-1:].double().cpu()]).to(start)
    way = walk(denoiser, start, cond, rungs)
    return torch.stack([step.x for step in way if step.index % substeps == 0])
