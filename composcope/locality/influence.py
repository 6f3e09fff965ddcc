"""What one condition does to every pixel, and the noisy images at which we ask.

    I_k(y, x) = || D(x, sigma, C)[y, x] - D(x, sigma, C without k)[y, x] ||_2          (section F, equation 10)

The norm is over colour channels; forward passes only.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Conditioner, ConditionSet, Denoiser, X
from composcope.diffusion.sample import heun_step, noise
from composcope.locality.jacobian import Sigma, levels


def influence(
    denoiser: Denoiser, x: X, sigma: Sigma, conditioner: Conditioner, condition_set: ConditionSet, seed: int = 0
) -> Float[Tensor, "condition height width"]:
    """Equation 10 for every condition of the set, averaged over the batch; image i is asked with seed + i."""
    return torch.stack(influences(denoiser, x, sigma, conditioner, [condition_set] * len(x), seed)).mean(0)


@torch.no_grad()
def influences(
    denoiser: Denoiser,
    x: X,
    sigma: Sigma,
    conditioner: Conditioner,
    condition_sets: Sequence[ConditionSet],
    seed: int = 0,
) -> list[Tensor]:
    """Equation 10 for each image with a condition set of its own: [condition, height, width] an image, in one batch."""
    conds = [conditioner.left_out(asked, seed + i).to(x) for i, asked in enumerate(condition_sets)]
    image = torch.repeat_interleave(torch.tensor([len(c) for c in conds], device=x.device))
    x0 = denoiser(x[image], levels(sigma, x)[image], torch.cat(conds))
    return [(own[:1] - own[1:]).norm(dim=1) for own in x0.split([len(c) for c in conds])]


def noised(images: X, sigma: float, seeds: Sequence[int]) -> X:
    """Clean x with noise of level sigma: what the denoiser is trained on. Image i gets the noise of seeds[i]."""
    return images + sigma * noise(seeds, images.shape[1:]).to(images)


@torch.no_grad()
def trajectory(
    denoiser: Denoiser, start: X, sigmas: Float[Tensor, " levels"], cond: Cond, substeps: int = 4
) -> Float[Tensor, "levels batch channel height width"]:
    """The model's own states at each of `sigmas` (falling, none 0), from unit noise, with Heun steps between them."""
    sigmas = sigmas.to(start)
    x = start * sigmas[0]
    states = [x]
    for sigma, lower in pairwise(sigmas):
        ladder = torch.logspace(sigma.log10(), lower.log10(), substeps + 1).to(sigmas)
        for high, low in pairwise(ladder):
            x = heun_step(denoiser, x, cond, high, low)
        states.append(x)
    return torch.stack(states)
