"""Drawing scenes, and feeding a training step with images: `python -m bench scenes`.

share waiting = time the training loop spends in next(batches) / all its time"""

import itertools
import time

import numpy as np
import torch
from torch import nn

from composcope.diffusion.train import ahead, use
from composcope.scenes import LocationGrid, Rules, Stream
from composcope.scenes.rules import draw

BATCH, STEPS = 64, 12


def drawing(low: int, high: int, count: int) -> float:
    """Scenes a second on one core, all rules and the visible pixels included: the median of five
    calls."""
    rules, seconds = Rules(objects=(low, high)), []
    draw(0, 0, 2, rules)
    for call in range(5):
        start = time.perf_counter()
        draw(1, call * count, count, rules)
        seconds.append(time.perf_counter() - start)
    return count / float(np.median(seconds))


def step_of(width: int):
    """A stand-in for a training step on one core: four convolutions at full resolution, forwards
    and backwards."""
    wide = [layer for _ in range(2) for layer in (nn.Conv2d(width, width, 3, padding=1), nn.SiLU())]
    net = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.SiLU(), *wide, nn.Conv2d(width, 3, 3, padding=1)
    )
    optimizer = torch.optim.Adam(net.parameters())

    def step(images: torch.Tensor) -> None:
        optimizer.zero_grad()
        (net(images + torch.randn_like(images)) - images).square().mean().backward()
        optimizer.step()

    return step


def feeding(size: int) -> tuple[float, float]:
    """The share of time spent waiting for data, and the images a second that were trained on."""
    torch.manual_seed(0)
    use(1, 1)
    step, data = step_of(32), Stream(Rules(), size, LocationGrid(16))
    batches = ahead(lambda start: data.batch(start, BATCH), itertools.count(0, BATCH))
    step(next(batches).images)
    waited, start = 0.0, time.perf_counter()
    for _ in range(STEPS):
        asked = time.perf_counter()
        images = next(batches).images
        waited += time.perf_counter() - asked
        step(images)
    total = time.perf_counter() - start
    batches.close()
    return waited / total, STEPS * BATCH / total


def rows() -> list[tuple[str, str, str]]:
    out = []
    for low, high, count in ((1, 3, 2000), (1, 6, 1000), (10, 10, 100), (12, 12, 10)):
        floor = "floor 5,000" if high == 3 else ""
        what, speed = f"scenes drawn, {low}-{high} objects, one core", drawing(low, high, count)
        out.append((what, f"{speed:,.0f}/s", floor))
    for size in (32, 64):
        share, rate = feeding(size)
        remark = f"floor < 5 %; a training step that eats {rate:,.0f} images/s on the other core"
        out.append((f"time waiting for data at {size}x{size}", f"{share:.1%}", remark))
    return out
