"""Ask for 0, 1, 2, ... conditions, draw, find the objects, compare: how far does a model compose?

images = draw(model, asked, seeds),   outcome = match(asked, detect(image)),   outcomes -> rows

A measurement: a function from a model to rows. Commands, the study, the explorer and notebooks call
this one."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from jaxtyping import UInt8

from composcope.arrays import read_npz
from composcope.diffusion.denoiser import ConditionSet, Counted, Denoiser, Drawer, Wrapper
from composcope.diffusion.sample import draw, noise, noise_levels, walk
from composcope.errors import InputError
from composcope.evaluation.accuracy import error_of
from composcope.evaluation.detect import Found, detect
from composcope.evaluation.k_max import Error, Rule, k_max, paper_rule, strict_rule
from composcope.evaluation.matching import Outcome, match
from composcope.files import parse_json, read_json, whole
from composcope.pictures import read_picture
from composcope.progress import bar
from composcope.results import Estimate, Row, mean, row
from composcope.results.samples import Record as Told
from composcope.results.samples import Samples, read_samples, write_samples
from composcope.scenes.condition import CONDITIONERS, SumOfParts, most_unlabelled

Images = UInt8[np.ndarray, "n h w 3"]
APART = 100_000  # seeds of neighbouring K are this far apart


@dataclass(frozen=True)
class Answers:
    """Images of one K, the condition set each was asked for, and the objects found in it."""

    images: Images
    asked: list[ConditionSet]
    found: list[list[Found]]

    def first(self, num: int) -> "Answers":
        return Answers(self.images[:num], self.asked[:num], self.found[:num])

    def outcomes(self, conditioner: SumOfParts, tolerance: float) -> list[Outcome]:
        pairs = zip(self.asked, self.found, strict=True)
        return [match(conditioner, asked, found, tolerance) for asked, found in pairs]


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
    """`num` images for each K, counted and compared with what was asked: shares, objects an image,
    K_max.

    model      a loaded run, a wrapper around one, or any other Drawer
    K          how many conditions to ask for; more than the conditioner can be asked for is left
    out
    way        of choosing them: one of the conditioner's `ways`, the first if not given
    tolerance  how far an object may be from its place along each axis, in sides of the image
    keep       a folder for images, what was asked and found; what is there is not drawn again"""
    conditioner = model.conditioner
    if conditioner is None:
        raise InputError("evaluate: this model has no conditioner, so nothing can be asked of it")
    if not getattr(conditioner, "countable", False):
        noun = getattr(conditioner, "noun", "condition")
        raise InputError(
            f"evaluate: a {noun} of this model cannot be counted: the detector knows the objects "
            "of scenes alone; `audit` measures where conditions act"
        )
    if num < 1 or steps < 2 or not tolerance > 0:
        raise InputError(
            "evaluate: at least 1 image for each K, 2 steps and a tolerance above 0 are needed"
        )
    Ks = sorted({k for k in K if k <= conditioner.most})
    if not Ks or Ks[0] < 0:
        raise InputError(f"evaluate: K is some of 0 to {conditioner.most} for {conditioner.noun}s")
    way = way or conditioner.ways[0]
    setting = {**model.about, "asked": way, "steps": steps, "seed": seed}
    answers: dict[int, Answers] = {}
    with bar() as progress:
        task = progress.add_task("drawing", total=num * len(Ks))
        for k in Ks:
            progress.update(task, description=f"drawing K = {k}")
            asked = conditioner.ask(k, num, seed, way)
            path = Path(keep) / f"K{k}.npz" if keep else None
            source = {**setting, "solver": solver, "K": k}
            before = num * len(answers)

            def shown(done: int, before: int = before) -> None:
                progress.update(task, completed=before + done)

            answers[k] = answered(
                model, asked, seed + APART * k, steps, path, source, solver, batch, device, shown
            )
            progress.update(task, completed=num * len(answers))
    if keep:
        path = Path(keep) / "samples.npz"
        last = read_samples(path) if path.exists() else None
        write_samples(path, samples_of(model, answers, tolerance, setting, solver, device, last))
    view = getattr(model, "view", "full")
    error = known_error(conditioner, way, view, tolerance, answers, keep)
    counts = row(
        "length/evaluations",
        evaluations(model, answers[Ks[-1]].asked[0], device),
        **setting,
        K=Ks[-1],
    )
    trained = model.about.get("trained")
    # Objects beside those asked for are no fault where the labels of training left so many out.
    extras = most_unlabelled(model.about.get("labels") or "all", trained or 1)
    return [*judged(conditioner, answers, tolerance, setting, error, trained, extras), counts]


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
    are there are not drawn again.
    """
    num = len(asked)
    kept = read_answers(path, source).first(num) if path and path.exists() else None
    while kept is None or len(kept.images) < num:
        done = len(kept.images) if kept else 0
        progress(done)
        some = asked[done : done + batch]
        seeds = range(first + done, first + done + len(some))
        images = draw(model, some, seeds, steps, solver, batch, device=device)
        kept = joined(kept, Answers(images, list(some), detect(images)))
        if path:
            write_answers(path, kept, source or {})
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

    asked        JSON: {"file.png": [[u, v], ...]} or {"file.png": ["red", ...]}
    conditioner  that these are conditions of; if not given, the first of ours that they fit
    trained      the most objects of a training image, N of the paper's rule; None leaves it out
    extras       objects beside those asked for that are no fault, since training labels left so
                 many out
    keep         a folder for the detector's own error, which is not measured again then"""
    folder = Path(folder)
    sets = read_asked(asked)
    conditioner = conditioner or fitting(list(sets.values()), str(asked))
    most = max((len(conditions) for conditions in sets.values()), default=-1)
    if not 0 <= most <= conditioner.most:
        raise InputError(
            f"{asked} asks for nothing, or for more than {conditioner.most} {conditioner.noun}s "
            "of one image"
        )
    images = stacked([read_picture(folder / name) for name in sets], folder)
    found = detect(images)
    answers = {}
    for K in range(most + 1):
        chosen = [i for i, conditions in enumerate(sets.values()) if len(conditions) == K]
        if chosen:
            answers[K] = Answers(
                images[chosen], [list(sets.values())[i] for i in chosen], [found[i] for i in chosen]
            )
    setting = {"run": folder.resolve().name, "asked": "given", "trained": trained}
    error = known_error(conditioner, conditioner.ways[-1], view, tolerance, answers, keep)
    return judged(conditioner, answers, tolerance, setting, error, trained, extras), answers


# ----------------------------------------------------------------------------
# From answers to rows.


def judged(
    conditioner: SumOfParts,
    answers: Mapping[int, Answers],
    tolerance: float,
    setting: Mapping[str, Any],
    error: Error | None,
    trained: int | None,
    extras: int,
) -> list[Row]:
    """For each K shares and means, and what of the failures the detector may explain; K_max by each
    rule."""
    outcomes = {K: some.outcomes(conditioner, tolerance) for K, some in answers.items()}
    coordinates = {**setting, "tolerance": tolerance if conditioner.has_places else None}
    rows = []
    for K, of_K in outcomes.items():
        for name, values in numbers(of_K).items():
            rows.append(row(f"length/{name}", interval(values), **coordinates, K=K))
        if K > 0 and error and trained:
            rows.append(row("length/error", error.share(K, len(of_K), trained), **coordinates, K=K))
    rules: dict[str, Rule] = {"strict": strict_rule}
    if trained:
        rules["paper"] = paper_rule(trained, error)
    for name, rule in rules.items():
        found = k_max(outcomes, rule, extras)
        rows.append(row("length/k_max", found, **coordinates, rule=name, max_K=max(outcomes)))
    return rows


def numbers(outcomes: Sequence[Outcome]) -> dict[str, np.ndarray]:
    """What is told of the images of one K, one number an image; truth values become shares."""
    names = ("found", "missing", "extra", "merged", "drawn")
    counts = {name: np.array([getattr(outcome, name) for outcome in outcomes]) for name in names}
    complete = counts["missing"] == 0
    count_error = np.abs(counts["extra"] - counts["missing"])
    return {
        "exact": complete & (counts["extra"] == 0),
        "complete": complete,
        **counts,
        "count_error": count_error,
    }


def interval(values: np.ndarray) -> Estimate:
    """The share or mean with its interval; one image has none."""
    return mean(values) if len(values) > 1 else Estimate(float(values[0]), n=1)


def known_error(
    conditioner: SumOfParts,
    way: str,
    view: str,
    tolerance: float,
    answers: Mapping[int, Answers],
    keep: str | Path | None,
) -> Error | None:
    """The detector's own error at what was asked; None for conditions that no scene of ours can be
    made of."""
    shape = next(iter(answers.values())).images.shape[1:3]
    place = Path(keep) if keep else None
    try:
        return error_of(conditioner, way, view, tolerance, shape, list(answers), keep=place)
    except InputError:
        return None


def evaluations(model: Drawer, asked: ConditionSet, device: torch.device | str) -> int:
    """Evaluations of the network that one of the denoiser takes: 1 but for wrappers that call it
    several times."""
    counted = Counted(innermost(model))
    twin = rewrapped(model, counted)
    x = torch.zeros(1, *model.shape, device=device)
    with torch.no_grad():
        twin(x, torch.ones(1, device=device), model.conditioner([asked]).to(device))
    return counted.evaluations


def innermost(model: Denoiser) -> Denoiser:
    return innermost(model.denoiser) if isinstance(model, Wrapper) else model


def rewrapped(model: Denoiser, inner: Denoiser) -> Denoiser:
    """The same wrappers around another denoiser."""
    if not isinstance(model, Wrapper):
        return inner
    twin = copy.copy(model)
    twin.denoiser = rewrapped(model.denoiser, inner)
    return twin


# ----------------------------------------------------------------------------
# A few of the answers, for the eye.

K_SHOWN = (1, 3, 6, 9)  # the paper's Figure 1
K_WALKED = 6
SHOWN_EACH = 4
SHOWN_OTHERS = 2  # of every other K


def samples_of(
    model: Drawer,
    answers: Mapping[int, Answers],
    tolerance: float,
    setting: Mapping[str, Any],
    solver: str,
    device: torch.device | str,
    before: Samples | None = None,
) -> Samples:
    """The first images of each K, and how the first of K = 6 came out of the noise, which is not
    done again if it was `before`."""
    some = [one.first(SHOWN_EACH if K in K_SHOWN else SHOWN_OTHERS) for K, one in answers.items()]
    asked = [conditions for one in some for conditions in one.asked]
    found = [things for one in some for things in one.found]
    pairs = zip(asked, found, strict=True)
    met = [list(match(model.conditioner, *pair, tolerance).met) for pair in pairs]
    places = [[(thing.x, thing.y) for thing in things] for things in found]
    K = K_WALKED if K_WALKED in answers else max(answers)
    conditions = answers[K].asked[0]
    walked = told(model.conditioner, conditions)
    if before is not None and before.record.walked == walked:
        frames, sigmas = before.frames, before.sigmas
    else:
        frames, sigmas = denoising(model, conditions, K, setting, solver, device)
    return Samples(
        about={**setting, "tolerance": tolerance if model.conditioner.has_places else None},
        images=np.concatenate([one.images for one in some]),
        record=Told([told(model.conditioner, one) for one in asked], met, places, walked),
        frames=frames,
        sigmas=sigmas,
    )


def told(conditioner: SumOfParts, conditions: ConditionSet) -> list:
    """Conditions as they are kept: places as they are, all others as words."""
    return list(conditions) if conditioner.has_places else [str(one) for one in conditions]


def denoising(
    model: Drawer,
    conditions: ConditionSet,
    K: int,
    setting: Mapping[str, Any],
    solver: str,
    device: torch.device | str,
) -> tuple[Images, np.ndarray]:
    """The denoised image at every noise level on the way to the first image of K; the levels."""
    seed = setting["seed"] + APART * K
    x = noise([seed], model.shape).to(device)
    cond = model.conditioner([conditions], seed).to(device)
    levels = noise_levels(setting["steps"]).to(device)
    source = torch.Generator().manual_seed(seed)
    steps = list(walk(model, x, cond, levels, solver, [source]))
    frames = np.concatenate([model.decode(step.x0.cpu()) for step in steps])
    return frames, np.array([float(step.sigma) for step in steps])


# ----------------------------------------------------------------------------
# Answers in files.


def joined(kept: Answers | None, fresh: Answers) -> Answers:
    if kept is None:
        return fresh
    return Answers(
        np.concatenate([kept.images, fresh.images]),
        kept.asked + fresh.asked,
        kept.found + fresh.found,
    )


@dataclass(frozen=True)
class Record:
    """What the file of answers says of its images; `source` is what they were made from."""

    asked: list[list]
    found: list[list[Found]]
    source: dict[str, Any]


def write_answers(path: str | Path, answers: Answers, source: Mapping[str, Any]) -> None:
    """An .npz of the images and, as JSON, what was asked, found, and what they were made from."""
    record = {"asked": answers.asked, "found": answers.found, "source": source}
    text = np.frombuffer(msgspec.json.encode(record), np.uint8)
    with whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, images=answers.images, record=text)


def read_answers(path: str | Path, source: Mapping[str, Any] | None = None) -> Answers:
    """Answers kept before; an InputError if they were not made from `source`, where it is given."""
    try:
        arrays = read_npz(path, "images", "record")
    except InputError as error:
        raise InputError(
            f"{path} does not hold the images of an evaluation ({error}); move it away"
        ) from None
    images = arrays["images"]
    record: Record = parse_json(arrays["record"].tobytes(), Record, str(path))
    whole_set = images.dtype == np.uint8 and images.ndim == 4
    if not whole_set or not len(images) == len(record.asked) == len(record.found):
        raise InputError(f"{path} does not hold as many images as were asked for; move it away")
    for name, value in msgspec.to_builtins(source or {}).items():
        if record.source.get(name) != value:
            raise InputError(
                f"{path} was drawn with {name} = {record.source.get(name)}, not {value}; "
                "keep this evaluation elsewhere"
            )
    return Answers(images, [conditions_of(given) for given in record.asked], record.found)


def read_asked(path: str | Path) -> dict[str, ConditionSet]:
    """Condition sets by the names of their images."""
    sets: dict = read_json(path, dict)
    for name, given in sets.items():
        if not isinstance(given, list):
            raise InputError(f"{path}, {name}: what is asked of an image is a list, not {given!r}")
    return {name: conditions_of(given) for name, given in sets.items()}


def conditions_of(given: Sequence) -> ConditionSet:
    """A condition set from JSON, where tuples have become lists."""
    return tuple(tuple(one) if isinstance(one, list) else one for one in given)


def fitting(sets: Sequence[ConditionSet], where: str) -> SumOfParts:
    """The first of our conditioners that takes all of these conditions."""
    for make in CONDITIONERS.values():
        conditioner = make(16)
        try:
            for conditions in sets:
                conditioner.parts(conditions, 0)
        except (InputError, TypeError, ValueError):
            continue
        return conditioner
    names = ", ".join(dict.fromkeys(make(16).noun for make in CONDITIONERS.values()))
    raise InputError(
        f"{where}: these conditions are not all of one kind that is known here ({names})"
    )


def stacked(pictures: Sequence[np.ndarray], folder: Path) -> Images:
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        raise InputError(f"the images in {folder} differ in size: {sorted(shapes)}")
    return np.stack(pictures)
