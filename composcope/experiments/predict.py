"""Question (ours): does conditional locality early in a training predict how far the model will
compose, better than its training loss does, and at which noise level?

    python -m composcope.experiments.predict --dry-run
    python -m composcope.experiments.predict

The study's own runs that have an early snapshot, and a draw of small runs over conditioner, labels,
objects, network, penalty and width, fixed by a seed before any was trained. Each is trained, its
early snapshot's locality measured, and six places asked of it in the end. The same command goes on
where it was stopped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from composcope.errors import InputError
from composcope.evaluation import evaluate
from composcope.experiments import command
from composcope.files import SHIPPED, read_lines, write_png
from composcope.locality import locality
from composcope.report.interventions import prediction_figure
from composcope.results import Row, add_rows, gather, read_rows, row, where
from composcope.runs import Config, configure, load
from composcope.runs.training import start
from composcope.scenes.labels import LABELS
from composcope.study import cost
from composcope.study.prediction import K, prediction
from composcope.study.table import STEPS, TOLERANCE

COUNT = 24
IMAGES = 44_800  # for each: ten minutes of one core with the largest of these networks
CONDITIONAL = "locality/conditional_locality"
EXPERIMENTS = ("exp1", "exp3", "exp3s", "exp2l", "exp3l")
MOST_OBJECTS = (1, 2, 3, 5)
RADII = (1, 2, 3)  # of patches, in cells
PENALTIES = (0.0, 0.0, 0.03, 0.1, 0.3)
WIDTHS = (32, 48, 64)


@dataclass(frozen=True)
class Small:
    """One run of the draw."""

    name: str
    experiment: str
    changes: dict[str, Any]
    preset: str

    @property
    def config(self) -> Config:
        return configure(self.experiment, self.preset, self.changes)


def small_runs(count: int = COUNT, preset: str = "laptop", seed: int = 0) -> list[Small]:
    """So many different runs, a function of the seed; the first ones are the same whatever the
    count. All train on equally many images.
    """
    found: list[Small] = []
    seen: list[tuple[str, dict[str, Any]]] = []
    for changes in draws(seed):
        if len(found) == count:
            break
        experiment = changes.pop("experiment")
        if (experiment, changes) in seen:
            continue
        seen.append((experiment, changes))
        images = min(configure(experiment, preset, changes).recipe.images, IMAGES)
        name = f"small-{seed}-{len(found):02d}"
        found.append(Small(name, experiment, {**changes, "images": images}, preset))
    return found


def draws(seed: int) -> Iterator[dict[str, Any]]:
    """Settings, each uniform over its choices; a patch-local network has a radius, a global one a
    penalty. A single object is labelled in one way only.
    """
    chance = np.random.default_rng(seed)
    while True:
        experiment = EXPERIMENTS[chance.integers(len(EXPERIMENTS))]
        labels = LABELS[chance.integers(len(LABELS))]
        most = MOST_OBJECTS[chance.integers(len(MOST_OBJECTS))]
        width = WIDTHS[chance.integers(len(WIDTHS))]
        radius = RADII[chance.integers(len(RADII))]
        penalty = PENALTIES[chance.integers(len(PENALTIES))]
        settings: dict[str, Any] = {"experiment": experiment, "objects": (1, most), "width": width}
        settings |= {"head": width, "labels": "all" if most == 1 else labels, "seed": seed}
        local = configure(experiment).net == "local"
        settings |= {"radius": radius} if local else {"penalty": penalty}
        yield settings


def main(
    count: int = COUNT,
    preset: str = "laptop",
    seed: int = 0,
    num: int = 24,
    samples: int = 8,
    levels: int = 9,
    folders: tuple[Path, ...] = (Path("study"), SHIPPED),
    work: Path = Path("runs/predict"),
    out: Path = Path("results/predict.jsonl"),
    dry_run: bool = False,
) -> list[Row]:
    """Rank correlations and held-out errors; `folders` are where rows and runs of the study are."""
    if count < 0:
        raise InputError("a draw has 0 runs or more")
    small = small_runs(count, preset, seed)
    if dry_run:
        print_plan(small, num, preset)
        return []
    for one in small:
        done = where(read_rows(out), run=one.name, what="length/found", K=K, snapshot="final")
        if done and where(read_rows(out), run=one.name, what="training/loss"):
            continue
        start(one.config, work / one.name)
        add_rows(out, measure_run(work / one.name, num, samples, levels))
    own = [path for path in folders if path.is_dir()]
    rows = [*gather(own), *read_rows(out)]
    rows += [*study_losses(rows, own)]
    made = prediction(rows)
    add_rows(out, [*where(rows, what="training/loss"), *made])
    write_png(out.with_suffix("") / "predict.png", prediction_figure(rows + made))
    for one_row in made:
        at = "" if one_row.sigma is None else f" at sigma {one_row.sigma:.3g}"
        print(f"{one_row.what} of {one_row.concept}{at}: {one_row.estimate} over {one_row.n} runs")
    print(f"rows: {out}; figure: {out.with_suffix('')}; composcope report shows them")
    return made


def print_plan(small: Sequence[Small], num: int, preset: str) -> None:
    """What would be trained and measured, with what each takes."""
    total = 0.0
    for one in small:
        training = cost.training_minutes(one.config, preset)
        each_K = 2 * STEPS - 1
        passes = num * each_K * cost.views(one.config)
        total += training + cost.minutes(passes, one.config, preset)
        settings = " ".join(f"{name}={value}" for name, value in one.changes.items())
        print(f"{one.name}  {training:4.1f} min  {one.experiment:6} {settings}")
    print(f"{len(small)} runs, {total:.0f} minutes of {cost.hardware(preset)} with asking")


def measure_run(folder: Path, num: int, samples: int, levels: int) -> list[Row]:
    """The locality of the early snapshot, the loss there, and what the final model draws."""
    early = load(folder, "early")
    rows = locality(early, levels=levels, num=samples, pixels=(), keep=folder / "locality")
    rows += [loss_row(folder, where(rows, what=CONDITIONAL)[0])]
    images = folder / "images"
    return rows + evaluate(load(folder), [K], num, tolerance=TOLERANCE, steps=STEPS, keep=images)


def loss_row(folder: Path, early: Row) -> Row:
    """The training loss around the snapshot that a row is of: the mean of the lines of the log
    within a tenth of the training before it.
    """
    at = early.images or 0
    log: list[dict[str, float]] = read_lines(folder / "log.jsonl", dict[str, float])
    losses = {line["images"]: line["loss"] for line in log if "loss" in line}
    near = [losses[images] for images in losses if at - max(losses) / 10 <= images <= at]
    near = near or [losses[min(losses, key=lambda images: abs(images - at))]]
    whose = {name: getattr(early, name) for name in ("run", "snapshot", "images", "weights")}
    return row("training/loss", float(np.mean(near)), n=len(near), **whose)


def study_losses(rows: Sequence[Row], folders: Sequence[Path]) -> Iterator[Row]:
    """Of runs of the study whose early locality is measured, where their log is here."""
    known = {one.run for one in where(rows, what="training/loss")}
    logs = {path.parent.name: path.parent for root in folders for path in root.rglob("log.jsonl")}
    for early in where(rows, what=CONDITIONAL, snapshot="early", intervention=None):
        if early.run not in known and early.run in logs:
            yield loss_row(logs[early.run], early)


if __name__ == "__main__":
    command(main)
