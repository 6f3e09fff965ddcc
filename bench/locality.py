"""Pixel gradients at once against loops of torch.autograd.grad; local conditions against the plain
model."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser
from composcope.diffusion.pixels import Pixels
from composcope.locality import intervene, pixel_gradient
from composcope.locality.jacobian import Pixel
from composcope.locality.measure import pixel_of
from composcope.runs.config import configure
from composcope.runs.model import Model
from composcope.scenes.condition import PAPER_LOCATIONS

PLACES = [*PAPER_LOCATIONS[:4], (0.5, 0.5)]  # whose pixels are looked at


def laptop_model() -> Model:
    """The laptop preset's global model with its gains opened: untrained, but every layer takes
    part."""
    model = Model(configure("exp1", "laptop"), Pixels(torch.zeros(3, 1, 1), 1.0))
    for name, value in model.state_dict().items():
        if name.endswith("gain"):
            value.fill_(0.5)
    return model.eval().requires_grad_(False)


def pixels_of(x: Tensor) -> list[Pixel]:
    return [pixel_of(place, x.shape[2:]) for place in PLACES]


def kept_graph(model: Model, x: Tensor, sigma: Tensor, cond: Tensor) -> Tensor:
    """One forward pass, then a call of autograd.grad for each pixel and channel."""
    leaf = x.clone().requires_grad_()
    x0 = model(leaf, sigma, cond)
    maps = [
        sum(
            torch.autograd.grad(x0[:, c, row, column].sum(), leaf, retain_graph=True)[0][:, c].abs()
            for c in range(3)
        ).mean(0)
        for row, column in pixels_of(x)
    ]
    return torch.stack(maps)


def fresh_graph(model: Model, x: Tensor, sigma: Tensor, cond: Tensor) -> Tensor:
    """The simplest loop: a forward pass and a call of autograd.grad for each pixel and channel."""
    maps = torch.zeros(len(PLACES), *x.shape[2:])
    for index, (row, column) in enumerate(pixels_of(x)):
        for c in range(3):
            leaf = x.clone().requires_grad_()
            value = model(leaf, sigma, cond)[:, c, row, column].sum()
            maps[index] += torch.autograd.grad(value, leaf)[0][:, c].abs().mean(0)
    return maps


def medians(*jobs: Callable[[], object], rounds: int = 3) -> list[float]:
    """Seconds of each job, the jobs taken in turns so that a busy moment hits them all."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds + 1):
        for job, own in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            own.append(time.perf_counter() - start)
    return [statistics.median(own[1:]) for own in times]  # the first round warms up


def at_once(model: Model, x: Tensor, sigma: Tensor, cond: Tensor) -> Tensor:
    return pixel_gradient(model, x, sigma, cond, pixels_of(x))


def rows() -> list[tuple[str, str, str]]:
    model = laptop_model()
    return [*(gradients(model, batch) for batch in (1, 8)), *interventions(model)]


def gradients(model: Model, batch: int) -> tuple[str, str, str]:
    x = torch.randn(batch, *model.shape)
    given = (model, x, torch.ones(batch), model.conditioner([PAPER_LOCATIONS[:4]] * batch))
    expected = kept_graph(*given)
    error = float((at_once(*given) - expected).abs().max() / expected.max())
    ours, kept, fresh = medians(
        lambda: at_once(*given), lambda: kept_graph(*given), lambda: fresh_graph(*given)
    )
    side = model.resolution
    times = f"{fresh / ours:.1f}x a loop, {kept / ours:.1f}x one on a kept graph"
    return (
        f"pixel gradient, 5 pixels, {side}x{side}, batch {batch}",
        f"{1e3 * ours:.0f} ms; {times}",
        f"2x; largest difference {error:.0e} of the maximum",
    )


def interventions(model: Model, batch: int = 8) -> list[tuple[str, str, str]]:
    x = torch.randn(batch, *model.shape)
    sigma = torch.ones(batch)
    cond = model.conditioner([PAPER_LOCATIONS[:7]] * batch)
    wrapped: dict[str, Denoiser] = {"plain": model}
    for name in ("local", "within", "composed"):
        wrapped[name] = intervene(model, name)
    jobs = [lambda d=denoiser: d(x, sigma, cond) for denoiser in wrapped.values()]
    with torch.no_grad():
        seconds = medians(*jobs)
    table = []
    for name, s in zip(wrapped, seconds, strict=True):
        speed = f"{1e3 * s / batch:.1f} ms an image and step"
        table.append((f"{name}, K = 7", speed, f"{s / seconds[0]:.1f}x plain"))
    return table
