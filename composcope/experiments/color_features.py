"""Claim (Figures 5, 11): a colour-conditioned model composes in part, and colours are disentangled in some layers.

python -m composcope.experiments.color_features --preset laptop
"""

from pathlib import Path

import tyro

from composcope.results import Row
from composcope.study.plan import measured

RUNS = "color"


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """K_max over colours, beside the disentanglement of every conditioned layer."""
    rows = measured(preset, out, runs, num)
    for row in rows:
        if row.claim == "length/k_max_paper" or row.claim.startswith("features/"):
            print(f"{row.claim:28} {row.setting} {row.value}   the paper: {row.paper}")
    return rows


if __name__ == "__main__":
    tyro.cli(main)
