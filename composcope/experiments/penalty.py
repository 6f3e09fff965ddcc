"""Question (ours): does a penalty on far influence make a global model local, and does it then
compose?

    python -m composcope.experiments.penalty --dry-run
    python -m composcope.experiments.penalty

A trained model goes on with the penalty: at small size for every weight and radius first, then
exp2 and exp3 for longer with the weight and radius that did best, each beside the same training
without a penalty. Locality is measured with one place asked, as in the training of exp2, and with
four. The same command goes on where it was stopped.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from composcope.evaluation import evaluate
from composcope.experiments import command
from composcope.files import write_png
from composcope.locality import locality
from composcope.report.interventions import penalty_figure
from composcope.results import Row, add_rows, only, read_rows, where
from composcope.runs import Config, configure, load
from composcope.runs.training import start
from composcope.scenes.condition import PAPER_LOCATIONS
from composcope.study import cost
from composcope.study.table import PENALTY_RUNS, STEPS, TOLERANCE

SWEPT = "exp2"
WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)
RADII = (0.125, 0.1875, 0.28)  # in image sides
USUAL_WEIGHT, USUAL_RADIUS = 0.1, 0.1875
SLACK = 0.1  # of images with none missing at K = 1 that a penalty may cost
ASKED = (1, 6)
LOCATIONS_ASKED = len(PAPER_LOCATIONS)  # the largest K of the longer runs
FOUND, COMPLETE = "penalty/found", "penalty/complete"
# The sweep's models are exp2 trained a little further: their rows have names of their own, so that
# no table takes them for exp2's.
SMALL = {
    "length/found": FOUND,
    "length/complete": COMPLETE,
    "locality/conditional_locality": "penalty/conditional_locality",
}


def settings() -> list[tuple[float, float]]:
    """(weight, radius) of each run of the sweep."""
    weights = [(weight, USUAL_RADIUS) for weight in WEIGHTS]
    radii = [(USUAL_WEIGHT, radius) for radius in RADII if radius != USUAL_RADIUS]
    return weights + radii


def further(
    run: str, weight: float, radius: float, images: int, preset: str, init: str | None
) -> Config:
    """A shipped run that goes on for so many images of another seed, or begins (init None)."""
    changes = {"penalty": weight, "penalty_radius": radius, "images": images, "seed": 1}
    return configure(run, preset, {**changes, "init": init})


def best(rows: Sequence[Row]) -> tuple[float, float]:
    """The weight and radius with the most places filled of six, among those that lose at most
    SLACK at K = 1; of equals the smaller weight."""
    at = {"what": COMPLETE, "K": ASKED[0]}
    plain = float(only(rows, **at, penalty=0.0).value)  # type: ignore[union-attr, arg-type]
    found = []
    for weight, radius in settings():
        own = where(rows, penalty=weight, radius=radius)
        complete, filled = only(own, **at), only(own, what=FOUND, K=ASKED[-1])
        if weight and complete and filled and float(complete.value or 0) >= plain - SLACK:
            found.append((-float(filled.value or 0), weight, radius))
    return min(found)[1:] if found else (min(filter(None, WEIGHTS)), USUAL_RADIUS)


def main(
    preset: str = "laptop",
    small_images: int = 8_000,
    images: int = 32_000,
    num: int = 48,
    samples: int = 16,
    levels: int = 9,
    from_nothing: bool = False,
    work: Path = Path("runs/penalty"),
    out: Path = Path("results/penalty.jsonl"),
    dry_run: bool = False,
) -> list[Row]:
    """Rows of the sweep and of the longer runs, and a figure beside them.

    from_nothing: runs do not go on from shipped ones; at presets whose networks do not ship."""

    if dry_run:
        print_plan_of_sweep(preset, small_images, images)
        return []

    train_sweep(preset, small_images, num, samples, levels, from_nothing, work, out)
    weight, radius = best(read_rows(out))
    print(f"a weight of {weight:g} beyond {radius:g} of the image did best")
    for run, names in PENALTY_RUNS.items():
        for name, own in zip(names, (0.0, weight), strict=True):
            if where(read_rows(out), what="locality/conditional_locality", run=name):
                continue
            init = None if from_nothing else run
            start(further(run, own, radius, images, preset, init), work / name)
            model, keep = load(work / name), work / name / "kept"
            Ks = range(LOCATIONS_ASKED + 1)
            rows = evaluate(model, Ks, num, tolerance=TOLERANCE, steps=STEPS, keep=keep)
            rows += locality(model, levels=levels, num=samples, pixels=(), keep=keep)
            add_rows(out, rows)
    rows = read_rows(out)
    write_png(out.with_suffix("") / "penalty.png", penalty_figure(rows))
    print(f"rows: {out}; figure: {out.with_suffix('')}; composcope report shows them")
    return rows


def train_sweep(
    preset: str,
    images: int,
    num: int,
    samples: int,
    levels: int,
    from_nothing: bool,
    work: Path,
    out: Path,
) -> None:
    """The small runs, and their rows."""
    for weight, radius in settings():
        at: dict[str, Any] = {"penalty": weight, "radius": radius}
        if where(read_rows(out), what=FOUND, K=ASKED[-1], **at):
            continue
        folder = work / f"{weight:g}-{radius:g}"
        init = None if from_nothing else SWEPT
        start(further(SWEPT, weight, radius, images, preset, init), folder)
        model, keep = load(folder), folder / "kept"
        rows = evaluate(model, ASKED, num, tolerance=TOLERANCE, steps=STEPS, keep=keep)
        for count, places in ((1, PAPER_LOCATIONS[:1]), (4, None)):
            keep = folder / f"kept-{count}"
            rows += locality(model, places, levels=levels, num=samples, pixels=(), keep=keep)
        own = [one for one in rows if one.what in SMALL]
        add_rows(out, [replace(one, what=SMALL[one.what], run=SWEPT, **at) for one in own])


def print_plan_of_sweep(preset: str, small_images: int, images: int) -> None:
    """What would be trained, with what each takes."""
    sweep = [(SWEPT, weight, radius, small_images) for weight, radius in settings()]
    longer = [(run, weight, USUAL_RADIUS, images) for run in PENALTY_RUNS for weight in (0.0, 0.1)]
    for run, weight, radius, count in sweep + longer:
        config = further(run, weight, radius, count, preset, None)
        minutes = cost.training_minutes(config, preset)
        print(f"{run}  weight {weight:<5g} beyond {radius:<6g}  {minutes:4.1f} min of training")


if __name__ == "__main__":
    command(main)
