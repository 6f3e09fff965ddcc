"""Claim (Figures 1, 8; Table 1): trained on 1-3 objects, a grid of all locations composes beyond, other labels do not.

python -m composcope.experiments.length_generalization --preset laptop
"""

from pathlib import Path

import numpy as np
import tyro
from PIL import Image

from composcope.evaluation.length import read
from composcope.files import write_png
from composcope.report.evaluation import curve
from composcope.report.sheets import sheet
from composcope.results import Row
from composcope.scenes import PAPER_LOCATIONS
from composcope.study.plan import measured

RUNS = "exp1,exp2,exp3,exp1-five"
FIGURE_1 = ("exp1", "exp2", "exp3", "exp2l", "exp2-local")  # rows; columns are K = 1, 3, 6, 9
K_SHOWN = (1, 3, 6, 9)


def figure_1(results: Path, each: int = 3) -> Image.Image | None:
    """The first images drawn for each K, a row a run, of all runs of the figure that are evaluated so far."""
    rows = []
    for run in FIGURE_1:
        kept = [read(path) for K in K_SHOWN for path in results.glob(f"evaluate-{run}/*/K{K}.npz")]
        if len(kept) == len(K_SHOWN) and all(len(images) >= each for images in kept):
            rows += [images[:each] for images in kept]
    asked = [PAPER_LOCATIONS[:K] for K in K_SHOWN for _ in range(each)] * (len(rows) // len(K_SHOWN))
    return sheet(np.concatenate(rows), asked, columns=each * len(K_SHOWN)) if rows else None


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """K_max of every run, the paper's beside; the share of exact images over K as a figure."""
    rows = [row for row in measured(preset, out, runs, num) if row.claim.startswith("length/")]
    final = [row for row in rows if row.setting.get("snapshot") == "final" and "intervention" not in row.setting]
    pictures = out / preset / "results" / "evaluate-all"
    write_png(pictures / "exact.png", curve([row for row in final if row.claim == "length/exact"]))
    if figure := figure_1(out / preset / "results", min(num, 3)):
        write_png(pictures / "figure-1.png", figure)
    for row in final:
        if row.claim == "length/k_max_paper":
            print(f"{row.run:12} K_max {row.value} [{row.low:.0f}, {row.high:.0f}]   the paper: {row.paper}")
    return rows


if __name__ == "__main__":
    tyro.cli(main)
