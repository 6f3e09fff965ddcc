"""Claim (Figures 1, 8; Table 1): trained on 1-3 objects, a grid of all locations composes beyond,
other labels do not.

python -m composcope.experiments.length_generalization --preset laptop"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL.Image import Image

from composcope.diffusion.sample import draw
from composcope.experiments import command, tell_k_max
from composcope.files import write_png
from composcope.report.evaluation import curve_figure
from composcope.report.sheets import sheet
from composcope.results import Row, where
from composcope.results.samples import K_SHOWN
from composcope.runs import load
from composcope.study.effects import Side
from composcope.study.plan import steps_of, study_rows

RUNS = ("exp1", "exp2", "exp3", "exp1-five")


def figure_1(folders: Sequence[Path], steps: int, each: int = 3) -> Image:
    """Images of K = 1, 3, 6 and 9 of the paper's places side by side, a line a run."""
    images: list[np.ndarray] = []
    places: list[tuple] = []
    for folder in folders:
        model = load(folder)
        assert model.conditioner is not None  # all runs of the study have one
        asked = [conditions for K in K_SHOWN for conditions in model.conditioner.ask(K, each)]
        images.append(draw(model, asked, steps=steps))
        places += asked
    return sheet(np.concatenate(images), places, columns=each * len(K_SHOWN))


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """K_max of every run, the paper's beside; the share of exact images over K; Figure 1."""
    rows = study_rows(preset, out, runs, num)
    usual = where(rows, snapshot="final", intervention=None, asked="paper")
    place = out / preset
    results = place / "results"
    write_png(results / "exact.png", curve_figure(usual))
    folders = [place / "runs" / run for run in runs]
    write_png(results / "figure-1.png", figure_1(folders, steps_of(preset)))
    tell_k_max(usual, map(Side, runs))
    print(f"the curves: {results / 'exact.png'}; Figure 1: {results / 'figure-1.png'}")
    return rows


if __name__ == "__main__":
    command(main)
