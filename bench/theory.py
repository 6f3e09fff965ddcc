"""How fast the local conditional score machine draws: 32 x 32 pixels, 10,000 training images, 10
Heun steps."""

import time

import torch

from composcope.diffusion.sample import noise_levels, sample
from composcope.theory.score_machine import score_machine

IMAGES, GRID, RADIUS, BATCH = 10_000, 8, 2, 8


def rows() -> list[tuple[str, str, str]]:
    """Noise for images and one to three random cells for conditions: the work does not depend on
    what they show."""
    generator = torch.Generator().manual_seed(0)
    order = torch.rand(IMAGES, GRID**2, generator=generator).argsort(1).argsort(1)
    cond = (order < 1 + torch.arange(IMAGES)[:, None] % 3).float()
    machine = score_machine(torch.randn(IMAGES, 3, 32, 32, generator=generator), cond, GRID, RADIUS)
    wall, cpu = time.perf_counter(), time.process_time()
    sample(machine, range(BATCH), (3, 32, 32), cond[:BATCH], noise_levels(10))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    measured = f"{BATCH / wall:.2f} images/s, {cpu / BATCH:.2f} CPU s an image"
    what = "local conditional score machine, 10,000 images of 32 x 32"
    return [(what, measured, "at least 1 image/s on two cores")]
