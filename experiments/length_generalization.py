"""Claim (Figures 1, 8; Table 1): trained on 1-3 objects, a grid of all locations composes beyond, other labels do not.

python -m experiments.length_generalization --preset laptop
"""

from pathlib import Path

import tyro

from composcope.files import whole
from composcope.report.evaluation import curve
from composcope.results import Row
from composcope.study.plan import measured

RUNS = "exp1,exp2,exp3,exp1-five"


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """K_max of every run, the paper's beside; the share of exact images over K as a figure."""
    rows = [row for row in measured(preset, out, runs, num) if row.claim.startswith("length/")]
    final = [row for row in rows if row.setting.get("snapshot") == "final" and "intervention" not in row.setting]
    with whole(out / preset / "results" / "evaluate-all" / "exact.png") as partial:
        curve([row for row in final if row.claim == "length/exact"]).savefig(partial, format="png", dpi=150)
    for row in final:
        if row.claim == "length/k_max_paper":
            print(f"{row.run:12} K_max {row.value} [{row.low:.0f}, {row.high:.0f}]   the paper: {row.paper}")
    return rows


if __name__ == "__main__":
    tyro.cli(main)
