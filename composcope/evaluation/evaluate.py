"""Ask for 0, 1, 2, ... conditions, draw, find the objects, compare: how far does a model compose?

images = draw(model, asked, seeds),   outcome = match(asked, detect(image)),   outcomes -> rows

A measurement: a function from a model to rows. Commands, the study, the explorer and notebooks call
this one."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch

from composcope.diffusion.denoiser import (
    ConditionSet,
    Counted,
    Denoiser,
    Drawer,
    Wrapper,
    innermost,
)
from composcope.diffusion.sample import check_drawer, draw
from composcope.errors import InputError, check_name
from composcope.evaluation.answers import (
    APART,
    Answers,
    counted,
    fitting,
    kept_answers,
    merge_answers,
    read_answers,
    read_asked,
    stack_pictures,
    write_answers,
)
from composcope.evaluation.detect import detector_of
from composcope.evaluation.judging import known_error, length_rows
from composcope.evaluation.shown import samples_of
from composcope.pictures import read_picture
from composcope.progress import bar
from composcope.results import Row, digest, row
from composcope.results.samples import read_samples, write_samples
from composcope.scenes.labels import most_unlabelled
from composcope.scenes.parts import SumOfParts
from composcope.scenes.scene import VIEWS


def evaluate(
    model: Drawer,
    K: Sequence[int] = range(13),
    num: int = 48,
    way: str | None = None,
    tolerance: float = 0.1,
    steps: int = 32,
    seed: int = 0,
    keep: str | Path | None = None,
    solver: str = "heun",
    batch: int = 32,
    device: torch.device | str = "cpu",
) -> list[Row]:
    """How far a model composes: draw `num` images for each K, find the objects in them, and compare
    these with what was asked. The rows have shares of images, objects in an image, and K_max.

    model: a loaded run, a wrapper around one, or any other Drawer.
    K: how many conditions to ask for; numbers above the conditioner's `most` are left out.
    way: how conditions are chosen, one of the conditioner's `ways`; the first if none is given.
    tolerance: how far an object may be from its place along each axis, in sides of the image.
    keep: a folder for images and what was found; what is there is not drawn again."""
    Ks, num, steps, seed, batch, tolerance = checked(model, K, num, steps, seed, batch, tolerance)
    conditioner = model.conditioner
    way = way or conditioner.ways[0]
    setting = {**model.about, "asked": way, "steps": steps, "seed": seed}
    asked = {k: conditioner.ask(k, num, seed, way) for k in Ks}
    answers: dict[int, Answers] = {}
    with bar() as progress:
        task = progress.add_task("drawing", total=num * len(Ks))
        for k in Ks:
            progress.update(task, description=f"drawing K = {k}")
            path = Path(keep) / f"K{k}.npz" if keep else None
            source = {**setting, "solver": solver, "K": k}
            before = num * len(answers)

            def shown(done: int, before: int = before) -> None:
                progress.update(task, completed=before + done)

            answers[k] = answered(
                model, asked[k], seed + APART * k, steps, path, source, solver, batch, device, shown
            )
            progress.update(task, completed=num * len(answers))
    if keep:
        path = Path(keep) / "samples.npz"
        last = read_samples(path) if path.exists() else None
        kept = kept_answers(keep, conditioner.most)
        write_samples(path, samples_of(model, kept, tolerance, setting, solver, device, last))
    view = getattr(model, "view", "full")
    error = known_error(conditioner, way, view, tolerance, answers, keep)
    passes = evaluations(model, answers[Ks[-1]].asked[0], device)
    calls = row("length/evaluations", passes, **setting, K=Ks[-1])
    trained = model.about.get("trained")
    # Objects beside those asked for are no fault where the labels of training left so many out.
    extras = most_unlabelled(model.about.get("labels") or "all", trained or 1)
    return [*length_rows(conditioner, answers, tolerance, setting, error, trained, extras), calls]


def checked(
    model: Drawer, K: Sequence[int], num: int, steps: int, seed: int, batch: int, tolerance: float
) -> tuple[list[int], int, int, int, int, float]:
    """The Ks to ask for, and the other numbers as Python's own, which alone rows can hold; an
    InputError for what cannot be evaluated."""
    check_drawer(model, "evaluate")
    conditioner = model.conditioner
    if conditioner is None:
        raise InputError("evaluate: this model has no conditioner, so nothing can be asked of it")
    if not getattr(conditioner, "countable", False):
        noun = getattr(conditioner, "noun", "condition")
        raise InputError(
            f"evaluate: a {noun} of this model cannot be counted: the detector knows the objects "
            "of scenes alone; `audit` measures where conditions act"
        )
    whole = all(isinstance(number, int | np.integer) for number in (num, steps, seed, batch))
    if not whole or not isinstance(tolerance, Real):
        numbers = "num, steps, seed and batch are whole numbers, tolerance is a number"
        raise InputError(f"evaluate: {numbers}")
    if num < 1 or steps < 2 or batch < 1 or not tolerance > 0:
        needed = "at least 1 image for each K, 2 steps and a tolerance above 0"
        raise InputError(f"evaluate: {needed} are needed")
    counts = list(K) if isinstance(K, Iterable) else [None]
    if not all(isinstance(k, int | np.integer) for k in counts):
        like = [K] if isinstance(K, int) else [1, 2]
        raise InputError(f"evaluate: K is a list of numbers of conditions, such as {like}, not {K}")
    Ks = sorted({int(k) for k in counts if k <= conditioner.most})
    if not Ks or Ks[0] < 0:
        raise InputError(f"evaluate: K is some of 0 to {conditioner.most} for {conditioner.noun}s")
    return Ks, int(num), int(steps), int(seed), int(batch), float(tolerance)


def answered(
    model: Drawer,
    asked: Sequence[ConditionSet],
    first: int,
    steps: int,
    path: Path | None = None,
    source: Mapping[str, Any] | None = None,
    solver: str = "heun",
    batch: int = 32,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] = lambda done: None,
) -> Answers:
    """An image of each condition set, from the seeds `first`, `first` + 1, ..., and what is found
    in it. With a `path` images are kept there with the `source` they were made from, and those that
    are there are not drawn again."""
    num = len(asked)
    kept = recounted(path, source or {}).first(num) if path and path.exists() else None
    while kept is None or len(kept.images) < num:
        done = len(kept.images) if kept else 0
        progress(done)
        some = asked[done : done + batch]
        seeds = range(first + done, first + done + len(some))
        images = draw(model, some, seeds, steps, solver, batch, device=device)
        kept = merge_answers(kept, counted(images, some))
        if path:
            write_answers(path, kept, source or {})
    return kept


def recounted(path: Path, source: Mapping[str, Any]) -> Answers:
    """Answers kept before; what an earlier detector found there is found anew, so that one counts
    in all images."""
    kept = read_answers(path, source)
    if kept.detector != detector_of(kept.images):
        kept = counted(kept.images, kept.asked)
        write_answers(path, kept, source)
    return kept


def evaluate_images(
    folder: str | Path,
    asked: str | Path,
    conditioner: SumOfParts | None = None,
    tolerance: float = 0.1,
    trained: int | None = 3,
    extras: int = 0,
    view: str = "full",
    keep: str | Path | None = None,
) -> tuple[list[Row], dict[int, Answers]]:
    """The same of images made elsewhere, and the images by the number of conditions.

    asked: a JSON file, {"file.png": [[u, v], ...]} or {"file.png": ["red", ...]}.
    conditioner: to which these conditions belong; if none is given, the first of ours that fits.
    trained: the most objects of a training image, N of the paper's rule; None leaves it out.
    extras: as many objects that were not asked for are allowed: training left them unlabelled.
    keep: a folder for the detector's own error, which is then not measured again."""
    folder = Path(folder)
    if not tolerance > 0 or extras < 0 or (trained is not None and trained < 1):
        needed = "a tolerance above 0, objects from 1 and extras from 0 on are needed"
        raise InputError(f"evaluate: {needed}")
    check_name("view", view, VIEWS)
    sets = read_asked(asked)
    conditioner = conditioner or fitting(sets, str(asked))
    most = max((len(conditions) for conditions in sets.values()), default=-1)
    if not 0 <= most <= conditioner.most:
        more = f"more than {conditioner.most} {conditioner.noun}s of one image"
        raise InputError(f"{asked} asks for nothing, or for {more}")
    images = stack_pictures([read_picture(folder / name) for name in sets], folder)
    answers = {}
    given = list(sets.values())
    for K in range(most + 1):
        chosen = [i for i, conditions in enumerate(given) if len(conditions) == K]
        if chosen:
            answers[K] = counted(images[chosen], [given[i] for i in chosen])
    setting = {"run": folder.resolve().name, "asked": "given", "trained": trained}
    # Folders of one name are told apart, and so are ways to ask and to judge one folder.
    how = repr((given, extras, view)).encode()
    setting["setting"] = f"images {digest(images.tobytes() + how)}"
    error = known_error(conditioner, conditioner.ways[-1], view, tolerance, answers, keep)
    return length_rows(conditioner, answers, tolerance, setting, error, trained, extras), answers


def evaluations(model: Drawer, asked: ConditionSet, device: torch.device | str) -> int:
    """Evaluations of the network that one of the denoiser takes: 1 but for wrappers that call it
    several times."""
    counted = Counted(innermost(model))
    twin = rewrapped(model, counted)
    x = torch.zeros(1, *model.shape, device=device)
    with torch.no_grad():
        twin(x, torch.ones(1, device=device), model.conditioner([asked]).to(device))
    return counted.evaluations


def rewrapped(model: Denoiser, inner: Denoiser) -> Denoiser:
    """The same wrappers around another denoiser."""
    if not isinstance(model, Wrapper):
        return inner
    twin = copy.copy(model)
    twin.denoiser = rewrapped(model.denoiser, inner)
    return twin
