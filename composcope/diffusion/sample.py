"""From noise to images: the EDM noise levels and solvers; each image comes from its own seed, whatever the batch.

dx / dsigma = (x - D(x, sigma)) / sigma            (EDM, eq. 1 with the schedule sigma(t) = t)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Denoiser, X
from composcope.progress import track

Levels = Float[Tensor, " levels"]


def noise_levels(steps: int = 32, sigma_min: float = 0.002, sigma_max: float = 80.0, rho: float = 7.0) -> Levels:
    """sigma_0 = sigma_max > ... > sigma_{steps-1} = sigma_min, then 0 (EDM, eq. 5)."""
    ramp = torch.linspace(0, 1, steps, dtype=torch.float64)
    sigmas = (sigma_max ** (1 / rho) + ramp * (sigma_min ** (1 / rho) - sigma_max ** (1 / rho))) ** rho
    return torch.cat([sigmas, sigmas.new_zeros(1)]).float()


def noise(seeds: Sequence[int], shape: Sequence[int]) -> Float[Tensor, "batch channel height width"]:
    """Unit noise, image i from seeds[i] alone."""
    return torch.stack([torch.randn(tuple(shape), generator=torch.Generator().manual_seed(seed)) for seed in seeds])


def slope(denoiser: Denoiser, x: X, sigma: Float[Tensor, ""], cond: Cond) -> X:
    """dx / dsigma at one noise level for the whole batch."""
    return (x - denoiser(x, sigma.expand(len(x)), cond)) / sigma


def euler(denoiser: Denoiser, x: X, cond: Cond, sigmas: Levels) -> X:
    """First order, one call a step; x is unit noise."""
    x = x * sigmas[0]
    for sigma, lower in pairwise(sigmas):
        x = x + (lower - sigma) * slope(denoiser, x, sigma, cond)
    return x


def heun(denoiser: Denoiser, x: X, cond: Cond, sigmas: Levels) -> X:
    """Second order, two calls a step but the last (EDM, algorithm 1); x is unit noise."""
    x = x * sigmas[0]
    for sigma, lower in pairwise(sigmas):
        x = heun_step(denoiser, x, cond, sigma, lower)
    return x


def heun_step(denoiser: Denoiser, x: X, cond: Cond, sigma: Float[Tensor, ""], lower: Float[Tensor, ""]) -> X:
    first = slope(denoiser, x, sigma, cond)
    ahead = x + (lower - sigma) * first
    if lower == 0:
        return ahead
    return x + (lower - sigma) * (first + slope(denoiser, ahead, lower, cond)) / 2


@dataclass(frozen=True)
class Churn:
    """How much fresh noise the stochastic solver adds, and at which levels (EDM, algorithm 2)."""

    S_churn: float = 40.0
    S_min: float = 0.05
    S_max: float = 50.0
    S_noise: float = 1.003


def stochastic(
    denoiser: Denoiser, x: X, cond: Cond, sigmas: Levels, churn: Churn, generators: Sequence[torch.Generator]
) -> X:
    """Heun's steps from a slightly higher level, reached with fresh noise of each image's own (EDM, algorithm 2)."""
    x = x * sigmas[0]
    gamma = min(churn.S_churn / (len(sigmas) - 1), 2**0.5 - 1)
    for sigma, lower in pairwise(sigmas):
        raised = sigma * (1 + gamma) if churn.S_min <= sigma <= churn.S_max else sigma
        fresh = torch.stack([torch.randn(x.shape[1:], generator=source) for source in generators]).to(x)
        x = x + (raised**2 - sigma**2).sqrt() * churn.S_noise * fresh
        x = heun_step(denoiser, x, cond, raised, lower)
    return x


SOLVERS: dict[str, Callable[..., Tensor]] = {"heun": heun, "euler": euler}


@torch.no_grad()
def sample(
    denoiser: Denoiser,
    seeds: Sequence[int],
    shape: Sequence[int],
    cond: Float[Tensor, "n features"] | None = None,
    sigmas: Levels | None = None,
    solver: str = "heun",
    churn: Churn | None = None,
    batch: int = 64,
    what: str | None = None,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "n channel height width"]:
    """One x a seed, `batch` at a time; under a bar when `what` names it. With `churn`, the stochastic solver.

    cond row i belongs to seed i. The same seed and cond give the same image in any batch, to float round-off.
    """
    sigmas = (noise_levels() if sigmas is None else sigmas).to(device)
    starts = range(0, len(seeds), batch)
    drawn = []
    for start in track(starts, what) if what else starts:
        chosen = seeds[start : start + batch]
        rows = None if cond is None else cond[start : start + batch].to(device)
        x = noise(chosen, shape).to(device)
        if churn:
            # A second stream a seed: the first numbers of the seed's own are the starting noise.
            sources = [torch.Generator().manual_seed(seed ^ 0x5DEECE66D) for seed in chosen]
            drawn.append(stochastic(denoiser, x, rows, sigmas, churn, sources).cpu())
        else:
            drawn.append(SOLVERS[solver](denoiser, x, rows, sigmas).cpu())
    return torch.cat(drawn)
