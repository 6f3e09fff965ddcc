"""From noise to images: the EDM noise levels and solvers; each image comes from its own seed.

dx / dsigma = (x - D(x, sigma)) / sigma            (EDM, eq. 1 with the schedule sigma(t) = t)"""

import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from composcope.diffusion.denoiser import (
    Cond,
    ConditionSet,
    Denoiser,
    Drawer,
    X,
    cond_of,
    plain_sets,
)
from composcope.errors import InputError, check_name
from composcope.progress import track

Levels = Float[Tensor, " levels"]


def noise_levels(
    steps: int = 32, sigma_min: float = 0.002, sigma_max: float = 80.0, rho: float = 7.0
) -> Levels:
    """sigma_0 = sigma_max > ... > sigma_{steps-1} = sigma_min, then 0 (EDM, eq. 5)."""
    ramp = torch.linspace(0, 1, steps, dtype=torch.float64)
    sigmas = level(ramp, sigma_min, sigma_max, rho)
    return torch.cat([sigmas, sigmas.new_zeros(1)]).float()


def level(way: Levels, sigma_min: float, sigma_max: float, rho: float = 7.0) -> Levels:
    """The noise level after a share of the way from sigma_max to sigma_min (EDM, eq. 5)."""
    first, last = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return (first + way * (last - first)) ** rho


def slope(x: X, x0: X, sigma: Tensor) -> X:
    """dx / dsigma, along which a step is taken (EDM, eq. 3)."""
    return (x - x0) / sigma


def noise(seeds: Sequence[int], shape: Sequence[int]) -> X:
    """Unit noise, image i from seeds[i] alone."""
    sources = [torch.Generator().manual_seed(seed) for seed in seeds]
    return torch.stack([torch.randn(tuple(shape), generator=source) for source in sources])


def streams(seeds: Sequence[int]) -> list[torch.Generator]:
    """Sources of fresh noise on the way: the first numbers of a seed's own are its unit noise."""
    return [torch.Generator().manual_seed(seed ^ 0x5DEECE66D) for seed in seeds]


class Step(NamedTuple):
    """One noise level on the way from noise to image."""

    index: int  # type: ignore[assignment]  # which a tuple has as a method
    sigma: Float[Tensor, ""]
    x: X  # the noisy image at this level
    x0: X  # what the denoiser makes of it; of the last step, where no noise is left, x itself


@dataclass(frozen=True)
class Churn:
    """How much fresh noise the stochastic solver adds, and at which levels (EDM, algorithm 2)."""

    S_churn: float = 40.0
    S_min: float = 0.05
    S_max: float = 50.0
    S_noise: float = 1.003


SOLVERS = ("heun", "euler", "stochastic")


def check_solver(solver: str) -> None:
    check_name("solver", solver, SOLVERS)


@contextmanager
def idle_cores() -> Iterator[None]:
    """Torch with as many threads as there are idle cores, at least one and never more than it had.

    Threads wait for each other after every layer: beside one busy core a small network is ten times
    slower on two threads than on one."""
    before = torch.get_num_threads()
    idle = round((os.cpu_count() or 1) - os.getloadavg()[0])
    torch.set_num_threads(max(1, min(before, idle)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def walk(
    denoiser: Denoiser,
    x: X,
    cond: Cond,
    sigmas: Levels,
    solver: str = "heun",
    sources: Sequence[torch.Generator] = (),
    churn: Churn | None = None,
) -> Iterator[Step]:
    """The way down from unit noise x through falling `sigmas`, a Step for each of them.

    solver: "euler" is first order and calls the denoiser once a step; "heun" second order, twice a
    step but for the last (EDM, algorithm 1); "stochastic" is Heun's from a slightly higher level,
    reached with fresh noise of each image's own generator in `sources` (EDM, algorithm 2)."""
    check_solver(solver)
    churn = churn or Churn()
    gamma = min(churn.S_churn / max(len(sigmas) - 1, 1), 2**0.5 - 1)
    x = x * sigmas[0]
    for index, (sigma, lower) in enumerate(pairwise(sigmas)):
        at = sigma
        if solver == "stochastic":
            at = sigma * (1 + gamma) if churn.S_min <= sigma <= churn.S_max else sigma
            fresh = [torch.randn(x.shape[1:], generator=source) for source in sources]
            x = x + (at**2 - sigma**2).sqrt() * churn.S_noise * torch.stack(fresh).to(x)
        x0 = denoised(denoiser, x, at, cond)
        yield Step(index, at, x, x0)
        first = slope(x, x0, at)
        ahead = x + (lower - at) * first
        if solver != "euler" and lower > 0:
            second = slope(ahead, denoiser(ahead, lower.expand(len(x)), cond), lower)
            ahead = x + (lower - at) * (first + second) / 2
        x = ahead
    x0 = x if sigmas[-1] == 0 else denoised(denoiser, x, sigmas[-1], cond)
    yield Step(len(sigmas) - 1, sigmas[-1], x, x0)


def denoised(denoiser: Denoiser, x: X, sigma: Float[Tensor, ""], cond: Cond) -> X:
    """What a denoiser returns at one noise level, if it keeps the contract."""
    version = None if x.is_inference() else x._version  # which tensors of inference mode lack
    x0 = denoiser(x, sigma.expand(len(x)), cond)
    if not isinstance(x0, Tensor) or x0.shape != x.shape:
        found = list(x0.shape) if isinstance(x0, Tensor) else type(x0).__name__
        wanted = f"for x of {list(x.shape)}; x0 has the shape of x"
        raise InputError(f"the denoiser returns {found} {wanted}")
    if not bool(x0.isfinite().all()):
        raise InputError(
            f"the denoiser returns numbers that are not finite at sigma {float(sigma):g}"
        )
    if version is not None and x._version != version:
        raise InputError("the denoiser changes x in place; it must return a new tensor")
    return x0


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
    """One x a seed, `batch` at a time; under a bar when `what` names it.

    cond row i belongs to seed i; the same two give the same image in any batch, to round-off."""
    if cond is not None and len(cond) != len(seeds):
        given = f"{len(cond)} rows of cond for {len(seeds)} seeds"
        raise InputError(f"sample: {given}; give each seed its own row")
    check_solver(solver)
    sigmas = (noise_levels() if sigmas is None else sigmas).to(device)
    starts = range(0, len(seeds), batch)
    drawn = []
    with idle_cores():
        for start in track(starts, what) if what else starts:
            chosen = seeds[start : start + batch]
            rows = None if cond is None else cond[start : start + batch].to(device)
            x = noise(chosen, shape).to(device)
            *_, last = walk(denoiser, x, rows, sigmas, solver, streams(chosen), churn)
            drawn.append(last.x.cpu())
    return torch.cat(drawn)


def usable(device: torch.device | str) -> torch.device | str:
    """A device that torch can compute on here; an InputError for others."""
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        kind = ""
    if kind not in ("cpu", "cuda", "mps"):
        raise InputError(
            f"--device: there is no device {device!r} to compute on; cpu and cuda are devices"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device {device}: this machine has no GPU that torch can use")
    if kind == "cuda" and (torch.device(device).index or 0) >= torch.cuda.device_count():
        raise InputError(f"--device {device}: this machine has {torch.cuda.device_count()} GPUs")
    return device


def draw(
    model: Drawer,
    condition_sets: Sequence[ConditionSet],
    seeds: Sequence[int] | None = None,
    steps: int = 32,
    solver: str = "heun",
    batch: int = 64,
    what: str | None = None,
    device: torch.device | str = "cpu",
) -> UInt8[np.ndarray, "n height width 3"]:
    """Draw a picture of each condition set, each from a seed of its own.

    model: a loaded run, or a wrapper around one, such as LocalConditions(load("exp2")).
    seeds: 0, 1, 2, ... if none are given. A picture depends on its seed, not on its batch."""
    check_drawer(model, "draw")
    condition_sets = plain_sets(condition_sets)
    check_asked(model, condition_sets)
    seeds = range(len(condition_sets)) if seeds is None else seeds
    try:  # whole numbers of numpy and torch are numbers too
        seeds = [operator.index(seed) for seed in seeds]
        steps, batch = operator.index(steps), operator.index(batch)
    except TypeError:
        raise InputError(
            "draw: seeds are a list of whole numbers, one for each image; steps and batch are one"
        ) from None
    if len(seeds) != len(condition_sets):
        given = f"{len(condition_sets)} condition sets and {len(seeds)} seeds"
        raise InputError(f"draw: {given}; each set needs one")
    if not len(seeds):
        raise InputError("draw: no condition sets; [()] asks for one image with nothing in it")
    if steps < 2:
        raise InputError(f"draw: {steps} steps; a walk from noise to an image takes at least 2")
    if batch < 1:
        raise InputError(f"draw: batch is how many images are drawn at a time, not {batch!r}")
    if not all(-(2**63) <= seed < 2**64 for seed in seeds):
        raise InputError("draw: a seed is a whole number of at most 64 bits")
    cond = None
    if model.conditioner is not None:
        pairs = zip(condition_sets, seeds, strict=True)
        rows = [cond_of(model.conditioner, [conditions], seed) for conditions, seed in pairs]
        cond = torch.cat(rows).float()  # like x, whatever a conditioner counts in
    how = solver, None, batch, what, usable(device)
    return model.decode(sample(model, seeds, model.shape, cond, noise_levels(steps), *how))


def check_drawer(model: Any, where: str) -> None:
    """An InputError for a denoiser of which it is not known how large its images are."""
    try:
        known = model.conditioner, model.shape, model.decode
    except AttributeError:
        kind = getattr(model, "__name__", type(model).__name__)
        raise InputError(
            f"{where}: {kind} is no model that can be drawn with; take load(...) or one of "
            "composcope.adapters, such as from_x0(denoiser, shape=(3, 32, 32))"
        ) from None
    if len(known[1]) != 3:
        raise InputError(f"{where}: shape is (channels, height, width), not {known[1]}")


def check_asked(model: Drawer, condition_sets: Sequence[ConditionSet]) -> None:
    """An InputError for what is no list of condition sets, or asked of a model that takes none."""
    conditioner = model.conditioner
    # A place is itself a sequence: of two numbers.
    single = bool(getattr(conditioner, "has_places", False))
    if not is_set(condition_sets, False) or not all(is_set(s, single) for s in condition_sets):
        like = "[[(0.65, 0.65), (0.35, 0.35)]] * 4" if single else "[(condition, ...)] * 4"
        raise InputError(
            "draw takes a list of condition sets, one for each image, such as "
            f"{like}; {repr(condition_sets)[:60]} is not one"
        )
    if conditioner is None and any(len(conditions) for conditions in condition_sets):
        advice = "nothing can be asked of it; take [()] * n"
        raise InputError(f"draw: this model has no conditioner: {advice}")


def is_set(conditions: object, places: bool) -> bool:
    """Whether this can be all that is asked of one image, and is not a single word or place."""
    if not isinstance(conditions, Sequence | np.ndarray) or isinstance(conditions, str):
        return False
    return not (places and any(isinstance(condition, Real) for condition in conditions))
