"""The EDM2 training loss, and the noise it is taken at, drawn for each image from its own seed.

loss = E [ lambda(sigma) / exp(u(sigma)) |D(x0 + sigma n) - x0|^2 + u(sigma) ]
ln sigma ~ N(P_mean, P_std^2)"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.chance import GAMMA, MASK, mix
from composcope.diffusion.denoiser import Cond, Precond, Sigmas, X
from composcope.diffusion.penalty import far_share


def generator(seed: int, position: int, device: torch.device | str = "cpu") -> torch.Generator:
    """For the image at `position` in a training; those below 0 are other streams of the seed."""
    start = (seed * int(GAMMA) + position + 1) * int(GAMMA) & MASK
    return torch.Generator(device).manual_seed(int(mix(np.uint64(start))))


@dataclass(frozen=True)
class Noise:
    """The noise-level distribution (EDM, table 1, "noise distribution")."""

    P_mean: float
    P_std: float

    def draw(
        self, like: Float[Tensor, "n *shape"], generators: list[torch.Generator]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, "n *shape"]]:
        """sigma and unit noise for each image of `like`, each from its own generator."""
        # the same numbers in any memory layout
        sigma, noise = like.new_empty(len(like)), like.new_empty(like.shape)
        for i, source in enumerate(generators):
            torch.randn((), generator=source, out=sigma[i])
            torch.randn(like.shape[1:], generator=source, out=noise[i])
        return (self.P_mean + self.P_std * sigma).exp(), noise


class Loss(nn.Module):
    """The loss of each image; a module so that DistributedDataParallel can wrap all of it."""

    def __init__(self, denoiser: Precond):
        super().__init__()
        self.denoiser = denoiser

    def forward(
        self,
        x0: X,
        sigma: Sigmas,
        noise: X,
        cond: Cond,
        without: Cond = None,
        far: Float[Tensor, "batch 1 height width"] | None = None,
    ) -> tuple[Sigmas, ...]:
        """(what is minimised, its part lambda |D - x0|^2 alone), means over an image's values.

        With `without`, cond less one condition, and `far`, where that condition should not act,
        the share of its influence there as well (penalty.py)."""
        x = x0 + sigma[:, None, None, None] * noise
        if without is None or far is None or cond is None:
            return self.compared(self.denoiser(x, sigma, cond), x0, sigma)
        conds = torch.cat([cond, without])
        denoised, other = self.denoiser(x.repeat(2, 1, 1, 1), sigma.repeat(2), conds).chunk(2)
        influence = self.weight(sigma)[:, None, None, None] * (denoised - other).square()
        return *self.compared(denoised, x0, sigma), far_share(influence, far)

    def compared(self, denoised: X, x0: X, sigma: Sigmas) -> tuple[Sigmas, Sigmas]:
        """The loss of what the denoiser said, and its error alone."""
        error = self.weight(sigma) * (denoised - x0).square().mean((1, 2, 3))
        u = self.denoiser.log_variance(sigma)
        return error / u.exp() + u, error.detach()  # EDM2, eq. 21

    def weight(self, sigma: Sigmas) -> Sigmas:
        """lambda(sigma): EDM, table 1."""
        sd = self.denoiser.sigma_data
        return (sigma**2 + sd**2) / (sigma * sd) ** 2
