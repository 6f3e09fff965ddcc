"""Question (ours): how strong must a penalty on far influence be, how near is far, and does a model
that becomes local by it compose?

    python -m composcope.experiments.penalty --dry-run
    python -m composcope.experiments.penalty

Small runs of exp2: every weight at the usual radius, every radius at the usual weight. Of each, the
conditional locality and the places filled of one and of six. The same command goes on where it was
stopped. The study's runs with a penalty (exp2-penalty, exp3-penalty) take what was best here.
"""

from pathlib import Path

import tyro

from composcope.evaluation import evaluate
from composcope.files import write_png
from composcope.locality import locality
from composcope.report.interventions import penalty_figure
from composcope.results import Row, add_rows, read_rows, row, where
from composcope.runs import Config, configure, load
from composcope.runs.training import start
from composcope.study import cost
from composcope.study.table import STEPS, TOLERANCE

EXPERIMENT = "exp2"
IMAGES = 12_800
WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)
RADII = (0.125, 0.1875, 0.28)  # in image sides
USUAL_WEIGHT, USUAL_RADIUS = 0.1, 0.1875
ASKED = (1, 6)


def settings() -> list[tuple[float, float]]:
    """(weight, radius) of each run of the sweep."""
    weights = [(weight, USUAL_RADIUS) for weight in WEIGHTS]
    radii = [(USUAL_WEIGHT, radius) for radius in RADII if radius != USUAL_RADIUS]
    return weights + radii


def small(weight: float, radius: float, preset: str, images: int) -> Config:
    changes = {"penalty": weight, "penalty_radius": radius, "images": images}
    return configure(EXPERIMENT, preset, changes)


def main(
    preset: str = "laptop",
    images: int = IMAGES,
    num: int = 24,
    samples: int = 8,
    levels: int = 9,
    work: Path = Path("runs/penalty"),
    out: Path = Path("results/penalty.jsonl"),
    dry_run: bool = False,
) -> list[Row]:
    """Rows of the sweep, and a figure beside them."""
    for weight, radius in settings():
        config = small(weight, radius, preset, images)
        if dry_run:
            minutes = cost.training_minutes(config, preset)
            print(f"weight {weight:<5g} beyond {radius:<6g}  {minutes:4.1f} min of training")
            continue
        at = {"penalty": weight, "radius": radius}
        if where(read_rows(out), what="penalty/found", K=ASKED[-1], **at):
            continue
        folder = work / f"{weight:g}-{radius:g}"
        start(config, folder)
        add_rows(out, measured(folder, num, samples, levels, at))
    rows = read_rows(out)
    if rows:
        write_png(out.with_suffix("") / "penalty.png", penalty_figure(rows))
        print(f"rows: {out}; figure: {out.with_suffix('')}; composcope report shows them")
    return rows


def measured(folder: Path, num: int, samples: int, levels: int, at: dict[str, float]) -> list[Row]:
    """What the model fills of one place and of six, and its conditional locality."""
    model = load(folder)
    keep = {"keep": folder / "kept"}
    drawn = evaluate(model, ASKED, num, tolerance=TOLERANCE, steps=STEPS, **keep)
    looked = locality(model, levels=levels, num=samples, pixels=(), **keep)
    kinds = {"length/found": "penalty/found", "length/complete": "penalty/complete"}
    kinds["locality/conditional_locality"] = "penalty/conditional_locality"
    return [
        row(kinds[one.what], one.estimate, run=EXPERIMENT, images=one.images, K=one.K, **at)
        for one in drawn + looked
        if one.what in kinds
    ]


if __name__ == "__main__":
    tyro.cli(main)
