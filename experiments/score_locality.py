"""Claim (Figures 2, 10): models that compose have local conditional scores, those that do not have not.

    python -m experiments.score_locality --preset laptop

The scatter is over models and their early, middle and late snapshots (version 3, Figure 2 right).
"""

from pathlib import Path

import tyro

from composcope.report.locality import dots
from composcope.results import Row, read
from composcope.study.schedule import run_command
from composcope.study.plan import measured

RUNS = "exp1,exp2,exp3,exp2l,exp3l"


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """Conditional locality of every run with its interval; the scatter against the K_max gain, with its correlation."""
    rows = measured(preset, out, runs, num)
    for row in rows:
        if row.claim == "locality/conditional_locality" and row.value is not None:
            print(f"{row.run:12} {row.setting['snapshot']:7} conditional locality {row.value:.2f}")
    results = out / preset / "results"
    if len(dots(rows, "paper")) > 2:
        words = ("locality", "--scatter", str(results), "--out", str(results / "locality-scatter.jsonl"))
        run_command(words, str(out / preset / "logs" / "scatter.log"))
        for row in read(results / "locality-scatter.jsonl"):
            print(f"{row.claim} {row.value} [{row.low}, {row.high}] over {row.setting['dots']} models and snapshots")
    return rows


if __name__ == "__main__":
    tyro.cli(main)
