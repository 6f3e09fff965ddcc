"""What a training step of the laptop preset costs: scenes, loss, gradient, update, averages; and
what sampling does.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numba
import torch

from bench.nets import medians, operations, product
from composcope.diffusion.checkpoint import State
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.sample import noise_levels, sample
from composcope.diffusion.train import forward, learning_rate
from composcope.nets.layers import renormalize
from composcope.runs.config import Config, configure
from composcope.runs.data import examples_of, images_of, measured
from composcope.runs.model import Model
from composcope.scenes.condition import PAPER_LOCATIONS

Row = tuple[str, str, str]
FLOOR = 0.55  # of the peak, for the global model of the laptop preset


def step(config: Config) -> tuple[Model, Callable[[], None], float]:
    """The model, one whole step of its training, and the operations in the convolutions and
    products of that step.
    """
    images = images_of(config)
    model, batch = Model(config, *measured(config, images)), config.recipe.batch
    make, loss, state = (
        examples_of(model, images),
        Loss(model.denoiser),
        State(model, config.recipe.lr, (0.05, 0.1)),
    )
    steps = count(1)

    def run() -> None:
        t = next(steps)
        sources = [generator(0, t * batch + i) for i in range(batch)]
        objective, _ = forward(
            loss, make(t * batch, batch), sources, config.recipe, torch.contiguous_format
        )
        objective.backward()
        state.update(learning_rate(config.recipe, t * batch))
        renormalize(model)
        state.average(t)

    return model, run, operations(run)


def speed_rows() -> list[Row]:
    """One thread, in processor seconds; the matrix product takes turns with what it is compared
    with.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    rows: list[Row] = []
    for experiment, floor in (("exp1", FLOOR), ("exp2l", None)):
        config = configure(experiment, "laptop")
        model, run, total = step(config)
        multiply, peak_operations = product()
        peak_seconds, seconds = medians([multiply, run], time.process_time, 15)
        pace, speed, peak = (
            config.recipe.batch / seconds,
            total / seconds,
            peak_operations / peak_seconds,
        )
        measured = f"{pace:.0f} images/s, {speed / 1e9:.1f} GFLOP/s, {speed / peak:.0%} of the peak"
        remark = f"at least {floor:.0%}" if floor else "two patches an image"
        rows.append((f"training {experiment}, one thread", measured, remark))
        cond = model.conditioner([PAPER_LOCATIONS[:3]] * 8)
        (taken,) = medians(
            [lambda m=model, c=cond: sample(m, range(8), m.shape, c, noise_levels(8))],
            time.process_time,
            1,
        )
        rows.append(
            (
                f"sampling {experiment}, one thread",
                f"{8 / taken:.2f} images/s",
                "8 levels of Heun: 15 calls",
            )
        )
    torch.set_num_threads(threads)
    return rows


def memory_row() -> Row:
    """The largest resident size of a real run, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            Path(sys.executable).with_name("composcope"),
            "train",
            "exp1",
            "--images",
            "640",
            "--out",
            folder,
        ]
        subprocess.run(command, check=True, capture_output=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return "memory of training exp1, ten steps and a sheet", f"{peak:.2f} GiB", "under 2 GB"


def rows() -> list[Row]:
    return [*speed_rows(), memory_row()]
