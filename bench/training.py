"""What a training step of the laptop preset costs: scenes, loss, gradient, update, averages; and
what sampling does."""

import copy
import math
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numba
import torch
from torch import Tensor

from bench.nets import medians, operations, product
from composcope.diffusion.checkpoint import State
from composcope.diffusion.lesson import Denoising
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.recipe import layout, learning_rate
from composcope.diffusion.sample import noise_levels, sample
from composcope.nets.layers import renormalize
from composcope.runs.config import Config, configure
from composcope.runs.data import examples_of, images_of, pixel_constants
from composcope.runs.model import Model
from composcope.scenes.condition import PAPER_LOCATIONS

Row = tuple[str, str, str]
FLOOR = 0.55  # of the peak, for the global model of the laptop preset
RATIO = 0.6  # of the time that Adam in single precision takes to the same error
LEVELS = (0.2, 0.4, 1.0, 2.5, 6.4)  # of noise, at which errors are compared


class Trainee:
    """A model in training, step by step, as `composcope train` trains it."""

    def __init__(self, config: Config):
        images = images_of(config)
        self.config = config
        self.model = Model(config, *pixel_constants(config, images))
        self.make = examples_of(self.model, images)
        recipe = config.recipe
        memory_format = layout(recipe)
        self.model.to(memory_format=memory_format)  # type: ignore[call-overload]
        self.loss = Loss(self.model.denoiser)
        self.lesson = Denoising(recipe)
        self.state = State(self.model, recipe.optimizer, recipe.sigma_rels)
        self.steps = 0

    def step(self) -> None:
        recipe = self.config.recipe
        first = self.steps * recipe.batch
        self.steps += 1
        sources = [generator(recipe.seed, first + i) for i in range(recipe.batch)]
        objective, _ = self.lesson(self.loss, self.make(first, recipe.batch), sources)
        objective.backward()
        self.state.update(learning_rate(recipe, self.steps * recipe.batch))
        renormalize(self.model)
        self.state.average(self.steps)

    def averaged(self) -> Model:
        """The model with the averaged weights."""
        twin = copy.deepcopy(self.model)
        average = self.state.averages[self.config.recipe.sigma_rel].average
        twin.load_state_dict(dict(average), strict=False)
        return twin


def speed_rows() -> list[Row]:
    """One thread, in processor seconds; the matrix product takes turns with what it is compared
    with."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    rows: list[Row] = []
    for experiment, floor in (("exp1", FLOOR), ("exp2l", None)):
        config = configure(experiment, "laptop")
        trainee = Trainee(config)
        model, run = trainee.model, trainee.step
        total = operations(run)
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


def held_out_error(model: Model, x0: Tensor, cond: Tensor) -> float:
    """The geometric mean over LEVELS of the squared error of images it was not trained on."""
    errors = []
    for sigma in LEVELS:
        noise = torch.randn(x0.shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            found = model(x0 + sigma * noise, torch.full((len(x0),), sigma), cond)
        errors.append(float((found - x0).square().mean()))
    return math.exp(sum(map(math.log, errors)) / len(errors))


def learning_rows(images: int = 32_000, every: int = 1_600, scenes: int = 128) -> list[Row]:
    """Processor seconds until the preset reaches the held-out error that Adam has after so many
    images, in parts of Adam's. Both train in turns, so that what else the machine does meets both.
    """
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    ours = configure("exp1", "laptop")
    recipe = replace(ours.recipe, optimizer="adam", bf16=False, channels_last=False)
    adam, preset = Trainee(replace(ours, recipe=recipe)), Trainee(ours)
    fresh = preset.make(10**9, scenes)
    assert fresh.cond is not None
    seconds = {adam: 0.0, preset: 0.0}
    errors: dict[Trainee, list[tuple[float, float]]] = {adam: [], preset: []}
    for _ in range(images // every):
        for trainee in (adam, preset):
            start = time.process_time()
            for _ in range(every // recipe.batch):
                trainee.step()
            seconds[trainee] += time.process_time() - start
            error = held_out_error(trainee.averaged(), fresh.x0, fresh.cond)
            errors[trainee].append((seconds[trainee], error))
    goal = errors[adam][-1][1]
    reached = next((at for at, error in errors[preset] if error <= goal), math.inf)
    words = f"{reached / seconds[adam]:.2f} of Adam's ({reached:.0f} against {seconds[adam]:.0f} s)"
    last = errors[preset][-1][1]
    remark = f"at most {RATIO}; at equal images its error is {last / goal:.2f} of Adam's"
    return [(f"time to Adam's held-out error after {images:,} images", words, remark)]


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
    return [*speed_rows(), memory_row(), *learning_rows()]
