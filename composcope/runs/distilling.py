"""A run that learns from another one: what an intervention makes of it, in one pass.

folder: as of any other run; config.json says under `teacher` what it was distilled from"""

import os
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser
from composcope.diffusion.distillation import Ask, Following, Walks, starts_of
from composcope.diffusion.loss import generator
from composcope.diffusion.recipe import layout
from composcope.diffusion.train import use
from composcope.errors import InputError
from composcope.files import locked
from composcope.runs.config import Config, Teacher
from composcope.runs.model import Model, usable
from composcope.runs.training import Sheet, fit, is_finished, open_run, own_cores
from composcope.scenes.parts import SumOfParts

# A student begins with weights that denoise well, and forgets it where convolutions move as fast as
# labels: its error at sigma 1 was then four times as high (LOG.md).
MUON_RATE = 0.1
# Over this share of the states the rate falls to zero. In short trials a rate that falls late had
# less error at high noise, where places are decided (LOG.md).
COOL = 0.25
ASKED = 10**9  # far from the seeds of evaluations: these are not asked for what was practised


def student_config(
    model: Model,
    images: int,
    intervention: str,
    radius: float | None = None,
    walks: Walks | None = None,
    lr: float = 5e-3,
    batch: int = 6,
    seed: int = 0,
) -> Config:
    """A student of `model`: its network, and its recipe at a rate that at last falls to zero.

    images: states to learn from."""
    recipe = replace(
        model.config.recipe,
        images=images,
        batch=batch,
        lr=lr,
        muon_rate=MUON_RATE,
        warmup=50 * batch,
        decay=max(images, 1),
        cool=max(int(COOL * images), 1),
        penalty=0.0,
        accumulate=1,
        seed=seed,
    )
    teacher = Teacher(model.name, model.fingerprint, intervention, radius, walks or Walks())
    return replace(model.config, recipe=recipe, teacher=teacher, init=None)


def distill(
    model: Model,
    teacher: Denoiser,
    config: Config,
    folder: str | Path,
    sheet: Sheet | None = None,
    device: str = "cpu",
) -> None:
    """Train a student of `config` in `folder`, or go on.

    It begins with the weights of `model` and learns to say what `teacher`, which wraps it, says."""
    folder = Path(folder)
    if config.teacher is None:
        raise InputError("a distillation needs a configuration with a teacher")
    if model.conditioner is None:
        raise InputError(f"{model.name} takes no conditions: there is nothing to distil")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise InputError("a distillation runs in one process; start it without torchrun")
    device = usable(device)
    cores = config.threads or own_cores()
    use(cores, cores)
    with locked(folder):
        if is_finished(config, folder):
            return
        try_out(model, model.conditioner, teacher, device)
        model.to(memory_format=layout(config.recipe))  # type: ignore[call-overload]
        student = Model(config, model.pixels, conditioner=model.conditioner)
        student.load_state_dict(model.state_dict())
        walks, recipe = config.teacher.walks, config.recipe
        asked = model.conditioner.most, model.conditioner.features
        lesson = Following(teacher, walks, recipe, model.shape, asked, device)
        make = starts_of(walks, recipe, model.shape, asker(model.conditioner, recipe.seed))
        open_run(student, folder)
        fit(student, lesson, make, folder, sheet, device)


def try_out(model: Model, conditioner: SumOfParts, teacher: Denoiser, device: str) -> None:
    """What the teacher cannot do, such as find places, is refused before anything is written."""
    cond = conditioner([conditioner.choose(1, 0, 0, conditioner.ways[-1])]).to(device)
    x = torch.zeros(1, *model.shape, device=device)
    with torch.no_grad():
        teacher(x, torch.ones(1, device=device), cond)


def asker(conditioner: SumOfParts, seed: int) -> Ask:
    """What is asked for at a state: none to the most conditions, as the conditioner would practise.

    Each number is as likely: few more often gave no better student (LOG.md). Of locations there are
    no two in one spot, and up to twelve, which the training never saw."""

    def ask(number: int) -> Float[Tensor, "most features"]:
        source = generator(seed, -1 - number)
        K = int(torch.randint(conditioner.most + 1, (), generator=source))
        conditions = conditioner.practise(K, ASKED + seed, number)
        parts = torch.zeros(conditioner.most, conditioner.features)
        parts[:K] = torch.as_tensor(conditioner.parts(conditions, number))
        return parts

    return ask
