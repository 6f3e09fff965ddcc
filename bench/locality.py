"""Pixel gradients at once against loops of torch.autograd.grad; local conditions against the plain model."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from composcope.diffusion.pixels import Pixels
from composcope.locality import ComposedScores, LocalConditions, Nearest, Within, pixel_gradient
from composcope.runs.config import configure
from composcope.runs.model import Model
from composcope.scenes.condition import PAPER_LOCATIONS

PIXELS = [(20, 20), (8, 20), (20, 8), (11, 11), (16, 16)]


def laptop_model() -> Model:
    """The laptop preset's global model with its gains opened: untrained, but every layer takes part."""
    model = Model(configure("exp1", "laptop"), Pixels(torch.zeros(3, 1, 1), 1.0))
    for name, value in model.state_dict().items():
        if name.endswith("gain"):
            value.fill_(0.5)
    return model.eval().requires_grad_(False)


def kept_graph(model: Model, x: Tensor, sigma: Tensor, cond: Tensor) -> Tensor:
    """One forward pass, then a call of autograd.grad for each pixel and channel."""
    leaf = x.clone().requires_grad_()
    x0 = model(leaf, sigma, cond)
    maps = [
        sum(
            torch.autograd.grad(x0[:, c, row, column].sum(), leaf, retain_graph=True)[0][:, c].abs() for c in range(3)
        ).mean(0)
        for row, column in PIXELS
    ]
    return torch.stack(maps)


def fresh_graph(model: Model, x: Tensor, sigma: Tensor, cond: Tensor) -> Tensor:
    """The simplest loop: a forward pass and a call of autograd.grad for each pixel and channel."""
    maps = torch.zeros(len(PIXELS), *x.shape[2:])
    for index, (row, column) in enumerate(PIXELS):
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


def rows() -> list[tuple[str, str, str]]:
    model, table = laptop_model(), []
    for batch in (1, 8):
        x, sigma = torch.randn(batch, *model.shape), torch.ones(batch)
        cond = model.conditioner([PAPER_LOCATIONS[:4]] * batch)
        given = model, x, sigma, cond
        expected = kept_graph(*given)
        error = float((pixel_gradient(*given, PIXELS) - expected).abs().max() / expected.max())
        at_once, kept, fresh = medians(
            lambda g=given: pixel_gradient(*g, PIXELS), lambda g=given: kept_graph(*g), lambda g=given: fresh_graph(*g)
        )
        measured = f"{1e3 * at_once:.0f} ms; {fresh / at_once:.1f}x a loop, {kept / at_once:.1f}x one on a kept graph"
        table.append(
            (
                f"pixel gradient, 5 pixels, 32x32, batch {batch}",
                measured,
                f"2x; largest difference {error:.0e} of the maximum",
            )
        )
    return table + interventions(model)


def interventions(model: Model, batch: int = 8) -> list[tuple[str, str, str]]:
    x, sigma, cond = (
        torch.randn(batch, *model.shape),
        torch.ones(batch),
        model.conditioner([PAPER_LOCATIONS[:7]] * batch),
    )
    wrapped = {
        "plain": model,
        "local conditions, nearest": LocalConditions(model, model.conditioner, Nearest()),
        "local conditions, within": LocalConditions(model, model.conditioner, Within()),
        "composed scores": ComposedScores(model, model.conditioner),
    }
    jobs = [lambda d=denoiser: d(x, sigma, cond) for denoiser in wrapped.values()]
    with torch.no_grad():
        seconds = medians(*jobs)
    return [
        (f"{name}, K = 7", f"{1e3 * s / batch:.1f} ms an image and step", f"{s / seconds[0]:.1f}x plain")
        for name, s in zip(wrapped, seconds, strict=True)
    ]
