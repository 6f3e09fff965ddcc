"""`composcope evaluate`: ask for 0, 1, 2, ... objects, count what is drawn, and say up to where it holds."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import torch
import tyro
from rich.console import Console

from composcope.diffusion.denoiser import ConditionSet, Denoiser
from composcope.errors import InputError
from composcope.evaluation.detect import load as load_detector
from composcope.evaluation.detect import nearest
from composcope.evaluation.k_max import Error, k_max, paper_rule, strict_rule, usual, wilson
from composcope.evaluation.length import Judged, judge_folder, length, sampler
from composcope.evaluation.oracle import MOST
from composcope.evaluation.paper import K_MAX, NONE_ASKED
from composcope.files import write_png
from composcope.locality.intervention import ComposedScores, Counted, LocalConditions, Nearest, Radius, Strongest
from composcope.report.evaluation import curve, table, verdict
from composcope.report.sheets import sheet
from composcope.results import Row, add, jsonl, writable
from composcope.runs import Model, load
from composcope.runs.config import Config
from composcope.runs.model import name_of


@dataclass(frozen=True)
class Args:
    """composcope evaluate exp1 --num 64 --max 12

    Draw images of K = 0, 1, 2, ... conditions with a trained model, find the objects in them, match them with what was
    asked, and give K_max by the paper's rule and by a strict one. Images are kept beside the rows: the same command
    goes on where it was stopped. To judge images made elsewhere: composcope evaluate --images DIR --asked asked.json
    """

    run: Annotated[str | None, tyro.conf.Positional] = None
    """A shipped model by name, or a run folder."""
    images: Path | None = None
    """A folder of images to judge in place of a run."""
    asked: Path | None = None
    """What was asked of them: JSON, {"file.png": [[u, v], ...]} or {"file.png": ["red", ...]}."""
    locations: Literal["paper", "random"] = "paper"
    """The paper's twelve test locations, or random ones that obey the rules of scenes. Colours are always random."""
    num: int = 64
    """Images for each K."""
    max: int = 12
    """The largest K; 8 at most for colours."""
    steps: int = 32
    """Steps of the sampler."""
    snapshot: str = "final"
    """early, middle or final weights of the run."""
    intervention: Literal["none", "local", "narrow", "wide", "smooth", "annealed", "own", "composed"] = "none"
    """At sampling time, without training: every pixel denoised with its nearest condition alone, if within 1.5 eighths
    of the image (local), 1 (narrow), 2.2 (wide), 1.5 with soft borders (smooth), 2.5 at high noise to 1 at low
    (annealed), or with the one that acts most on it (own); or single-condition scores added up (composed)."""
    seed: int = 0
    """Of the noise and the random locations."""
    objects: int = 3
    """With --images: the most objects of a training image (N of the paper's rule)."""
    grid: int | None = None
    """Found within 1/grid of the image from the asked place; if not given, one cell of the run's own grid, or 1/16."""
    extras: bool = False
    """With --images: whether training labels left objects out, so that extra objects are no fault."""
    out: Path = Path("results/evaluate.jsonl")
    """Where the rows go; images, sheet and curve go into a folder beside it."""
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    """Where the network runs (a GPU was not tried here)."""
    json: bool = False
    """Print the rows as JSON lines."""


Wrap: TypeAlias = Callable[[Denoiser, Any], Denoiser]  # (denoiser, its conditioner)


def nearest_within(radius: Radius, smooth: float = 0.0) -> Wrap:
    return lambda denoiser, conditioner: LocalConditions(denoiser, conditioner, Nearest(radius, smooth))


INTERVENTIONS: dict[str, Wrap] = {
    "none": lambda denoiser, conditioner: denoiser,
    "local": nearest_within(1.5),
    "narrow": nearest_within(1.0),
    "wide": nearest_within(2.2),
    "smooth": nearest_within(1.5, smooth=0.5),
    "annealed": nearest_within(lambda sigma: 1 + 1.5 * sigma / (1 + sigma)),  # scores are more local at low noise
    "own": lambda denoiser, conditioner: LocalConditions(denoiser, conditioner, Strongest()),
    "composed": lambda denoiser, conditioner: ComposedScores(denoiser, conditioner),
}


@dataclass(frozen=True)
class Subject:
    """What is judged: its name, the coordinates of its rows, N, whether extras are allowed, and the paper's values."""

    name: str
    setting: Mapping[str, Any]
    how: str
    trained: int
    extras: bool
    k_max: str | None = None
    none_asked: str | None = None
    evaluations: int | None = None  # of the network for one of the denoiser, at the largest K
    seed: int | None = None


def main(args: Args) -> None:
    writable(args.out)
    if (args.run is None) == (args.images is None) or (args.images is None) != (args.asked is None):
        raise InputError("give either a RUN, or --images DIR with --asked asked.json")
    if args.num < 1 or args.steps < 2 or args.max < 0 or (args.grid is not None and args.grid < 1):
        raise InputError("--num and --grid are at least 1, --steps at least 2, --max at least 0")
    subject, judged, folder = judge_images(args) if args.images else judge_run(args)
    rows = rows_of(subject, judged)
    add(args.out, rows)
    draw(folder, judged, rows)
    console = Console(stderr=args.json)
    images = usual([len(one.outcomes) for one in judged.values()])
    console.print(table(rows, f"{subject.name}: {subject.how} conditions, {images} images for each K"), verdict(rows))
    console.print(f"rows: {args.out}   sheet, curve and images: {folder}", highlight=False)
    if args.json:
        sys.stdout.write(jsonl(rows))


def judge_run(args: Args) -> tuple[Subject, dict[int, Judged], Path]:
    model = load(str(args.run), args.snapshot, args.device)
    if model.conditioner is None:
        raise InputError(f"{args.run} was trained with nothing asked of its images; there is nothing to evaluate")
    config = model.config
    how = "colors" if config.conditioner == "color" else args.locations
    name = name_of(args.run) + ("" if args.intervention == "none" else f"+{args.intervention}")
    folder = args.out.with_suffix("") / f"{name}-{args.snapshot}-{how}-{args.seed}-{args.steps}-{model.fingerprint}"
    counted = Counted(model)
    denoiser = INTERVENTIONS[args.intervention](counted, model.conditioner)
    draw = sampler(denoiser, model.conditioner, model.pixels.decode, model.shape, args.steps, args.device)
    Ks, grid = range(min(args.max, MOST[how]) + 1), args.grid or config.architecture.grid_size
    judged = length(draw, how, Ks, args.num, 1 / grid, folder, args.seed)
    setting = {
        "snapshot": args.snapshot,
        "weights": model.fingerprint,
        "conditions": how,
        "num": args.num,
        "steps": args.steps,
        "grid": grid,
        "max": Ks[-1],
    }
    if args.intervention != "none":
        setting["intervention"] = args.intervention
    said, none = (None, None) if args.intervention != "none" else in_the_paper(config)
    evaluations = cost(counted, denoiser, model, judged[max(judged)].asked[0])
    name += f" within 1/{args.grid}" if args.grid else ""
    extras = config.labels != "all" and config.objects[1] > 1  # of one object none is left unlabelled
    subject = Subject(name, setting, how, config.objects[1], extras, said, none, evaluations, args.seed)
    return subject, judged, folder


def in_the_paper(config: Config) -> tuple[str | None, str | None]:
    """K_max, and what is drawn when nothing is asked; the paper's scenes have from one object on.

    Patches the size of the image act as the global model (E.3).
    """
    if config.objects[0] != 1:
        return None, None
    covers = 2 * config.architecture.radius + 1 >= config.architecture.grid_size
    kind = config.conditioner.replace("packed", "list"), config.labels, "global" if covers else config.net
    found, none = (values.get(kind, {}).get(config.objects[1]) for values in (K_MAX, NONE_ASKED))
    return found, none


def cost(counted: Counted, denoiser: Denoiser, model: Model, asked: ConditionSet) -> int:
    """Evaluations of the network that one evaluation of its wrapper takes."""
    before = counted.evaluations
    x, sigma, cond = torch.zeros(1, *model.shape), torch.ones(1), model.conditioner([asked])
    denoiser(*(tensor.to(next(model.parameters()).device) for tensor in (x, sigma, cond)))
    return counted.evaluations - before


def judge_images(args: Args) -> tuple[Subject, dict[int, Judged], Path]:
    assert args.images and args.asked
    grid = args.grid or 16
    judged = judge_folder(args.images, args.asked, 1 / grid)
    names = any(isinstance(c, str) for one in judged.values() for conditions in one.asked for c in conditions)
    how = "colors" if names else "random"
    if not judged or max(judged) > MOST[how]:
        raise InputError(f"{args.asked} asks for nothing, or for more than {MOST[how]} of one image")
    name = args.images.resolve().name
    subject = Subject(name, {"images": str(args.images), "grid": grid}, how, args.objects, args.extras)
    return subject, judged, args.out.with_suffix("") / name


def rows_of(subject: Subject, judged: Mapping[int, Judged]) -> list[Row]:
    """For each K shares and means with their 95 % intervals; K_max by both rules; the range of objects at K = 0."""
    rows = []
    for K, one in judged.items():
        for claim, values in measured(one).items():
            setting = {**subject.setting, "K": K}
            rows.append(
                Row(f"length/{claim}", subject.name, float(values.mean()), setting, subject.seed, *ends(values))
            )
    if subject.evaluations is not None:
        setting = {**subject.setting, "K": max(judged)}
        rows.append(Row("length/evaluations", subject.name, subject.evaluations, setting, subject.seed))
    return rows + verdicts(subject, judged)


def ends(values: np.ndarray) -> tuple[float | None, float | None]:
    """The 95 % interval of a share or a mean; one image has none."""
    mean, n = float(values.mean()), len(values)
    if n == 1:
        return None, None
    if values.dtype == bool:
        low, high = wilson(mean, n)
        return float(low), float(high)
    half = 1.96 * float(values.std(ddof=1)) / n**0.5
    return mean - half, mean + half


def measured(one: Judged) -> dict[str, np.ndarray]:
    """What is told of the images of one K; arrays of truth values are shares."""
    counts = {
        name: np.array([getattr(o, name) for o in one.outcomes]) for name in ("found", "missing", "extra", "merged")
    }
    complete = counts["missing"] == 0
    error = np.abs(counts["extra"] - counts["missing"])
    return {"exact": complete & (counts["extra"] == 0), "complete": complete, **counts, "count_error": error}


def verdicts(subject: Subject, judged: Mapping[int, Judged]) -> list[Row]:
    outcomes = {K: one.outcomes for K, one in judged.items()}
    some = next(iter(judged.values()))
    error = Error.of(load_detector(nearest(*some.images.shape[1:3]))[1], subject.how)
    rows = []
    for K in (K for K in outcomes if K > 0):
        value = error.tolerance(K, len(outcomes[K]), subject.trained)
        rows.append(Row("length/tolerance", subject.name, value, {**subject.setting, "K": K}, subject.seed))
    for name, rule in (("paper", paper_rule(subject.trained, error)), ("strict", strict_rule)):
        found = k_max(outcomes, rule, subject.extras)
        paper, setting, seed = subject.k_max if name == "paper" else None, dict(subject.setting), subject.seed
        rows.append(Row(f"length/k_max_{name}", subject.name, found.value, setting, seed, found.low, found.high, paper))
        extra = [o.extra for K, of_K in outcomes.items() if 0 < K <= max(found.value, 1) for o in of_K]
        rows.append(Row(f"length/k_max_{name}_extra", subject.name, f"+({usual(extra or [0])})", setting, seed))
    if 0 in outcomes:
        drawn = usual([o.drawn for o in outcomes[0]])
        setting = dict(subject.setting)
        rows.append(Row("length/none_asked", subject.name, drawn, setting, subject.seed, paper=subject.none_asked))
    return rows


def draw(folder: Path, judged: Mapping[int, Judged], rows: Sequence[Row], columns: int = 8) -> None:
    """The first images of each K in a row, asked places as dots and found ones as rings; and the curve."""
    images = np.concatenate([padded(one.images[:columns], columns) for one in judged.values()])
    asked, found = [], []
    for one in judged.values():
        places = [[c for c in conditions if not isinstance(c, str)] for conditions in one.asked[:columns]]
        rings = [[(f.x, f.y) for f in seen] for seen in one.found[:columns]]
        asked += places + [[]] * (columns - len(places))
        found += rings + [[]] * (columns - len(rings))
    write_png(folder / "sheet.png", sheet(images, asked, found, columns))
    write_png(folder / "exact.png", curve(rows))


def padded(images: np.ndarray, count: int) -> np.ndarray:
    blank = np.full((count - len(images), *images.shape[1:]), 255, np.uint8)
    return np.concatenate([images, blank])
