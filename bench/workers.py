"""Images of 128 x 128 that worker processes render ahead, beside what a GPU asks for.

A training of the `paper` preset takes 1.1 TFLOP an image (counted); an A100 at 40 % of its 312
TFLOP/s in bfloat16 asks for 113 images a second, and a node of eight for eight times that."""

import os
import time
from collections.abc import Iterator

from composcope.diffusion.train import ahead
from composcope.runs.config import configure
from composcope.runs.data import images_of
from composcope.runs.workers import render_ahead
from composcope.study import cost

BATCH = 32
BATCHES = 16


def rate(workers: int) -> float:
    """Images a second, once all workers have begun."""
    config = configure("exp1", "paper")
    with render_ahead(config, images_of(config), workers) as images:
        starts = range(0, BATCH * (BATCHES + 2 * workers), BATCH)
        made = ahead(lambda start: images(start, BATCH), starts, max(workers, 1))
        for _ in range(2 * workers or 1):
            next(made)
        began = time.perf_counter()
        count = sum(1 for _ in made)
        return BATCH * count / (time.perf_counter() - began)


def rows() -> Iterator[tuple[str, str, str]]:
    config = configure("exp1", "paper")
    wanted = cost.GPU / cost.training_operations(config)
    each = 0.0
    for workers in (1, 2):
        found = rate(workers)
        each = found / workers
        what, speed = f"{workers} render workers, 128 x 128", f"{found:.0f} images/s"
        yield (what, speed, f"{os.cpu_count()} cores")
    yield "64 workers, at this rate each", f"{64 * each:,.0f} images/s", "told, not measured"
    speeds = f"{wanted:.0f} and {8 * wanted:.0f} images/s"
    yield ("asked for by one GPU, and by eight", speeds, "by FLOPs")
