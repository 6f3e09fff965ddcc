"""Claim (Table 2): the more of its objects a training image labels, the further a model composes.

python -m composcope.experiments.label_policies --preset laptop
"""

from pathlib import Path

import tyro

from composcope.results import Row
from composcope.study.plan import measured

RUNS = "exp1,exp2,random,drop-one"


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """Both halves of Table 2: K_max, and the range of objects drawn when none is asked for."""
    rows = measured(preset, out, runs, num)
    told = ("length/k_max_paper", "length/none_asked")
    table = [row for row in rows if row.claim in told and row.setting.get("snapshot") == "final"]
    for row in table:
        print(f"{row.run:12} {row.claim:20} {row.value}   the paper: {row.paper}")
    return table


if __name__ == "__main__":
    tyro.cli(main)
