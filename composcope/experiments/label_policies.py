"""Claim (Table 2): the more of its objects a training image labels, the further a model composes.

python -m composcope.experiments.label_policies --preset laptop"""

from pathlib import Path

from composcope.experiments import command, tell_k_max
from composcope.results import Row, where
from composcope.study.effects import Side
from composcope.study.plan import study_rows
from composcope.study.table import BY_NAME

RUNS = ("exp1", "random", "drop-one", "exp2")


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """Both halves of Table 2: K_max, and the objects drawn when none is asked for."""
    rows = where(study_rows(preset, out, runs, num), snapshot="final", intervention=None)
    k_max = where(rows, what="length/k_max", rule=["paper", "places"])
    none_asked = where(rows, what="length/drawn", K=0)
    tell_k_max(rows, map(Side, runs))
    for row in none_asked:
        paper = ", ".join(map(str, BY_NAME[str(row.run)].paper_none_asked))
        print(f"{row.run:12} objects when none is asked for {row.estimate}   the paper: {paper}")
    return k_max + none_asked


if __name__ == "__main__":
    command(main)
