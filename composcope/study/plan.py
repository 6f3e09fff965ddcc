"""From the table of the study the graph of commands for a preset.

    run -> train -> evaluate (K_max: Tables 1 and 2) -> locality (Figures 2, 10, 12) -> features
    (Figures 5, 11)

The middle and early snapshots of the main runs are evaluated and measured too: they are the dots of
the scatter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composcope.errors import check_name, told_at
from composcope.results import Row, gather, where
from composcope.runs.config import Config
from composcope.study import cost
from composcope.study.schedule import Node, Study
from composcope.study.table import IMAGES_EACH, STEPS, TOLERANCE, Intervention, Run, chosen

SMOKE = {"locality": ("--num", "2"), "features": ("--num", "4")}


@dataclass(frozen=True)
class Task:
    """One measurement of one run."""

    measure: str  # evaluate, locality or features
    snapshot: str = "final"
    way: str | None = None  # of choosing conditions; None: the usual one
    intervention: Intervention | None = None


def plan(
    preset: str,
    folder: str | Path,
    only: Sequence[str] | None = None,
    num: int | None = None,
    seed: int = 0,
) -> list[Node]:
    """The nodes of the study: trainings first, since measurements wait for them."""
    with told_at("--preset"):
        check_name("preset", preset, cost.RATES)
    runs = chosen(only) if only is not None else distinct(chosen(), preset)
    place = Path(folder)
    trainings = [training_node(run, preset, place, seed) for run in runs]
    measured = [
        measuring_node(run, task, preset, place, num) for run in runs for task in tasks(run)
    ]
    return trainings + measured


def distinct(runs: Sequence[Run], preset: str) -> tuple[Run, ...]:
    """Without those that an earlier run is already: EDM2's labels are what most presets have."""
    first: dict[Config, Run] = {}
    for run in runs:
        first.setdefault(run.config(preset), run)
    return tuple(first.values())


def training_node(run: Run, preset: str, folder: Path, seed: int) -> Node:
    """A run from another seed is as far from the study's own."""
    changes = run.changes_at(preset)
    changes["seed"] = seed + changes.get("seed", 0)
    words = ("train", run.experiment, "--preset", preset, *options(changes))
    out = ("--out", str(folder / "runs" / run.name))
    minutes = cost.training_minutes(run.config(preset), preset)
    return Node(f"train {run.name}", words + out, minutes=minutes)


def options(changes: Mapping[str, Any]) -> Iterator[str]:
    """Fields of a Config as words of a command line."""
    for name, value in changes.items():
        yield f"--{name.replace('_', '-')}"
        yield from map(str, value if isinstance(value, tuple) else (value,))


def tasks(run: Run) -> Iterator[Task]:
    for snapshot in ("final", *run.snapshots):
        for measure in run.measures:
            yield Task(measure, snapshot)
    for way in run.ways:
        yield Task("evaluate", way=way)
    for intervention in run.interventions:
        yield Task("evaluate", intervention=intervention)


def measuring_node(run: Run, task: Task, preset: str, folder: Path, num: int | None) -> Node:
    """Every measurement has a file of rows of its own, so that two nodes never write to one."""
    how = {"way": task.way} if task.way else {}
    if done := task.intervention:
        how |= {"intervention": done.name}
        how |= {"radius": f"{done.radius:g}"} if done.radius is not None else {}
    earlier = [task.snapshot] if task.snapshot != "final" else []
    label = [task.measure, run.name, *earlier, *how.values()]
    words = [task.measure, str(folder / "runs" / run.name)]
    words += options({"snapshot": task.snapshot, **how})
    if task.measure == "evaluate":
        words += ["--num", str(num or IMAGES_EACH), "--max", str(most_asked(run, preset))]
        words += ["--tolerance", f"{TOLERANCE:g}", "--steps", str(steps_of(preset))]
    words += SMOKE.get(task.measure, ()) if preset == "smoke" else ()
    out = folder / "results" / ("-".join(label) + ".jsonl")
    return Node(
        name=" ".join(label),
        command=(*words, "--out", str(out)),
        needs=(f"train {run.name}",),
        minutes=expected_minutes(run, task, preset, num or IMAGES_EACH),
    )


def steps_of(preset: str) -> int:
    return 4 if preset == "smoke" else STEPS


def most_asked(run: Run, preset: str) -> int:
    return min(run.max_K, 4) if preset == "smoke" else run.max_K


def expected_minutes(run: Run, task: Task, preset: str, num: int) -> float:
    config = run.config(preset)
    steps = steps_of(preset)
    asked = (num, most_asked(run, preset), steps, task.intervention)
    passes = {
        "evaluate": cost.evaluation_passes(*asked),
        "locality": cost.locality_passes(),
        "features": cost.features_passes(steps),
    }
    return cost.minutes(passes[task.measure] * cost.views(config), config, preset)


def study_rows(
    preset: str, folder: str | Path, only: Sequence[str], num: int | None = None
) -> list[Row]:
    """The rows of some runs of the study; what is not done yet is done first."""
    place = Path(folder) / preset
    study = Study(plan(preset, place, only, num), place)
    study.check(study.run())
    return where(gather([place / "results"]), run=list(only))
