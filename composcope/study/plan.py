"""What the paper's tables and figures need: a table of runs, and from it the graph of commands for a preset.

    run -> train -> evaluate (K_max: Tables 1 and 2) -> locality (Figures 2, 10, 12) -> features (Figures 5, 11)

The middle and early snapshots of the main runs are evaluated and measured too: they are the dots of the scatter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from composcope.errors import InputError
from composcope.results import Row, read_rows as read
from composcope.study.schedule import Node, Study


@dataclass(frozen=True)
class Planned:
    """One training run of the study and what is measured on it."""

    name: str
    train: tuple[str, ...]  # words after `composcope train`
    shows: str  # the table or figure of the paper it serves
    minutes: float  # of training with the laptop preset, on one core
    images: int | None = None  # to train on with the laptop preset, where fewer than its own have to do
    max_asked: int = 10
    snapshots: tuple[str, ...] = ()  # beside the final one, for the scatter
    interventions: tuple[str, ...] = ()  # at sampling time, without training
    measures: tuple[str, ...] = ("evaluate", "locality")
    within: int | None = None  # judge its images also within 1/this of the image: a cell of what it is compared with
    each: float = 2  # minutes of one measurement; a patch-local network draws cell by cell
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by preset: words in place of `train`
    init: str | None = None  # the run whose weights it begins with, with the laptop preset


SNAPSHOTS = ("early", "middle")
WRAPPED = ("local", "narrow", "wide", "smooth", "annealed", "own", "composed")
COLORED = ("evaluate", "features")
# exp2's network on patches of 36 pixels; the paper's, 17 cells of a grid of 16, take four times as long to draw. On 1-3
# objects it ignored its label for 88,000 images, on one it follows it after 32,000 (LOG.md): it begins there.
# fmt: off
ONE = ("--objects", "1", "1")
WIDE = {
    "smoke": ("exp2l", "--radius", "2"),
    "laptop": ("exp2l", "--grid-size", "8", "--radius", "4",
               "--mult", "1", "1", "--blocks", "1", "--attention", "9", "--emb", "8"),
}
RUNS = (
    Planned("exp1",       ("exp1",),                       "Fig. 1, 2, 8, 10; Table 1", 95, snapshots=SNAPSHOTS),
    Planned("exp2",       ("exp2",),                       "Fig. 1, 2, 10; Table 1", 38, 192_000, snapshots=SNAPSHOTS,
            interventions=WRAPPED),
    Planned("exp2l",      ("exp2l",),                      "Fig. 1, 2, 10; Table 1", 16, snapshots=SNAPSHOTS,
            within=10, each=10),
    Planned("exp3",       ("exp3",),                       "Fig. 1, Table 1 (v3)", 38, 192_000, snapshots=SNAPSHOTS),
    Planned("exp3l",      ("exp3l",),                      "Table 1 (v3)", 16, within=10, each=10),
    Planned("exp1-one",   ("exp1", *ONE),                 "Fig. 4; Table 1, one object", 10, 48_000),
    Planned("exp2l-one",  ("exp2l", *ONE),                "Fig. 4; Table 1, one object", 8, 96_000, within=10,
            each=10),
    Planned("exp1-five",  ("exp1", "--objects", "1", "5"),    "Fig. 8; Table 1, 1-5 objects", 38, 192_000),
    Planned("color",      ("color", "--objects", "1", "5"),   "Fig. 5, 11; Table 1, colour", 38, 192_000, max_asked=8,
            measures=COLORED),
    Planned("exp2l-wide-one", ("exp2l", "--radius", "8", *ONE), "E.3, patches as wide as the image", 18, 48_000,
            max_asked=9, measures=("evaluate",), within=10, each=20,
            instead={preset: (*words, *ONE) for preset, words in WIDE.items()}),
    Planned("exp2l-wide", ("exp2l", "--radius", "8"),      "E.3, patches as wide as the image", 55, 144_000,
            max_asked=9, measures=("evaluate",), within=10, each=20, instead=WIDE, init="exp2l-wide-one"),
    Planned("random",     ("exp1", "--labels", "random"),  "Table 2, random number of labels", 19, 96_000),
    Planned("drop-one",   ("exp1", "--labels", "all_but_one"), "Table 2, all but one label", 19, 96_000),
)
# fmt: on
COST = {"smoke": 0.01, "laptop": 1.0, "small": 10.0, "paper": 2000.0}  # of training, relative to the laptop preset


def chosen(only: str | None) -> tuple[Planned, ...]:
    """The runs named in a comma-separated list; all of them for None."""
    if only is None:
        return RUNS
    known = {run.name: run for run in RUNS}
    names = [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise InputError(f"--only: there is no run {name!r} in the study; the runs are {', '.join(known)}")
    return tuple(known[name] for name in names)


def plan(preset: str, folder: str | Path, only: str | None = None, num: int = 24, seed: int = 0) -> list[Node]:
    """The nodes of the study in the order they are best done: trainings first, since measurements wait for them."""
    if preset not in COST:
        raise InputError(f"--preset: there is no preset {preset!r}; the presets are {', '.join(COST)}")
    runs = chosen(only)
    begun = {run.init for run in runs if preset == "laptop"} - {run.name for run in runs}
    first = [run for run in RUNS if run.name in begun]
    trainings = [training(run, preset, Path(folder), seed) for run in (*first, *runs)]
    return trainings + [node for run in runs for node in measurements(run, preset, Path(folder), num)]


def training(run: Planned, preset: str, folder: Path, seed: int) -> Node:
    """With the laptop preset a run may be smaller, or begin with the weights of another."""
    words, needs, runs = list(run.instead.get(preset, run.train)), [], folder / "runs"
    if preset == "laptop":
        words += ["--images", str(run.images)] if run.images else []
        if run.init:
            words, needs = [*words, "--init", str(runs / run.init)], [f"train {run.init}"]
    command = ("train", *words, "--preset", preset, "--seed", str(seed), "--out", str(runs / run.name))
    return Node(f"train {run.name}", command, needs=tuple(needs), minutes=run.minutes * COST[preset])


def measurements(run: Planned, preset: str, folder: Path, num: int) -> list[Node]:
    """Every measurement of one run: its own rows file each, so that two nodes never write to one file."""
    asked = ("--num", str(num), "--max", str(run.max_asked), "--steps", "4" if preset == "smoke" else "12")
    extra: dict[str, tuple[str, ...]] = {"evaluate": asked}
    if preset == "smoke":
        extra |= {"locality": ("--num", "2", "--noise-levels", "3"), "features": ("--num", "20")}
    jobs: list[tuple[str, str, tuple[str, ...]]] = [(measure, "final", ()) for measure in run.measures]
    jobs += [(m, s, ()) for s in run.snapshots for m in run.measures]
    jobs += [("evaluate", "final", ("--intervention", name)) for name in run.interventions]
    nodes = []
    for measure, snapshot, words in jobs:
        label = " ".join([measure, run.name, *(w for w in (snapshot,) if w != "final"), *words[1:]])
        out = folder / "results" / (label.replace(" ", "-") + ".jsonl")
        command = (measure, str(folder / "runs" / run.name), "--snapshot", snapshot, *words, *extra.get(measure, ()))
        after, minutes = (f"train {run.name}",), run.each * COST[preset]
        nodes.append(Node(label, (*command, "--out", str(out)), needs=after, minutes=minutes))
    if run.within and preset == "laptop":  # elsewhere all models have one grid
        first = nodes[0]
        again = f"{first.name} within 1-{run.within}"
        nodes.append(Node(again, (*first.command, "--grid", str(run.within)), needs=(first.name,), minutes=0.2))
    return nodes


def measured(preset: str, folder: str | Path, only: str, num: int = 24) -> list[Row]:
    """The rows of some runs of the study at a preset's scale; what is not done yet is done first."""
    place = Path(folder) / preset
    study = Study(plan(preset, place, only, num), place)
    if failed := study.run():
        raise InputError(f"{failed[0]} did not end well: see {study.log(failed[0])}")
    files = {Path(node.command[node.command.index("--out") + 1]) for node in study.nodes.values()}
    return [row for path in sorted(files) if path.suffix == ".jsonl" for row in read(path)]
