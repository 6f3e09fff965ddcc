"""Question (ours): does a student draw what its teacher draws, image by image?

    python -m composcope.experiments.imitation

A rule about every image is decided by one of 48. So both are asked for the same places from the
same noise, ten times as often as usual and from other seeds, and compared image by image: in how
many every place is filled, the difference of the two, and K_max by the usual rules. Images are
kept: the same command goes on where it was stopped."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from composcope.diffusion.denoiser import Drawer
from composcope.errors import InputError
from composcope.evaluation import evaluate
from composcope.evaluation.answers import read_answers
from composcope.experiments import command
from composcope.files import write_png
from composcope.locality import intervene
from composcope.report.students import imitation_figure
from composcope.results import Row, add_rows, mean, row
from composcope.runs import load
from composcope.study.table import STEPS, STUDENT, TOLERANCE

MEASURED = {f"length/{name}": f"imitation/{name}" for name in ("complete", "found", "k_max")}


def main(
    student: str = STUDENT,
    teacher: Path | None = None,
    most: int = 8,
    num: int = 480,
    steps: int = STEPS,
    seed: int = 1000,
    out: Path = Path("results/imitation.jsonl"),
) -> list[Row]:
    """Student and teacher beside each other, asked for 1 to `most` places.

    teacher: the folder of the run that the student was distilled from, if it does not ship."""
    model = load(student)
    taught = model.config.teacher
    if taught is None:
        raise InputError(f"{student} was not distilled: it has no teacher to be compared with")
    if num < 2 or most < 1:
        raise InputError("a comparison needs at least 2 images and one place")
    run = load(teacher or taught.run)
    if run.fingerprint != taught.weights:
        raise InputError(f"{student} was distilled from other weights than those of {run.name}")
    repaired = intervene(run, taught.intervention, taught.radius)
    Ks = range(1, most + 1)
    folder = out.with_suffix("")
    rows: list[Row] = []
    complete = {}
    drawers: dict[str, Drawer] = {"student": model, "teacher": repaired}
    for role, drawer in drawers.items():
        keep = folder / role
        found = evaluate(drawer, Ks, num, steps=steps, seed=seed, keep=keep)
        rows += [replace(one, what=MEASURED[one.what]) for one in found if one.what in MEASURED]
        complete[role] = {K: complete_images(drawer, keep / f"K{K}.npz", num) for K in Ks}
    about = {**model.about, "tolerance": TOLERANCE, "steps": steps, "seed": seed}
    about["detector"] = rows[0].detector
    for K in Ks:
        more = complete["student"][K] - complete["teacher"][K]
        rows.append(row("imitation/difference", mean(more), **about, K=K))
    add_rows(out, rows)
    write_png(folder / "imitation.png", imitation_figure(rows))
    tell(rows)
    print(f"rows: {out}; images and figure: {folder}; composcope report shows them")
    return rows


def complete_images(drawer: Drawer, path: Path, num: int) -> np.ndarray:
    """1 for each kept image in which every place is filled, else 0."""
    outcomes = read_answers(path).first(num).outcomes(drawer.conditioner, TOLERANCE)
    return np.array([float(outcome.missing == 0) for outcome in outcomes])


def tell(rows: Sequence[Row]) -> None:
    for one in rows:
        if one.what == "imitation/difference":
            print(f"K = {one.K}: complete in {one.estimate} more of the student's images")


if __name__ == "__main__":
    command(main)
