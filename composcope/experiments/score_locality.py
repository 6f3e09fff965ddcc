"""Claim (Figures 2, 10): models that compose have local conditional scores, others have not.

    python -m composcope.experiments.score_locality --preset laptop

The scatter is over models and their early, middle and late snapshots (version 3, Figure 2 right).
"""

from pathlib import Path

from composcope.experiments import command
from composcope.files import write_png
from composcope.report.locality import REACHES, correlation, dots, scatter
from composcope.results import Row, where
from composcope.study.plan import study_rows

RUNS = ("exp1", "exp2", "exp3", "exp3s", "exp2l", "exp3l")


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """Conditional locality of every run; the scatter against how far each composes."""
    rows = study_rows(preset, out, runs, num)
    for row in where(rows, what="locality/conditional_locality"):
        print(f"{row.run:12} {row.snapshot:7} conditional locality {row.estimate}")
    points = {reach: dots(rows, reach) for reach in REACHES}
    for reach, some in points.items():
        found = correlation(some)
        if found is not None:
            print(f"rank correlation ({reach}) {found} over {len(some)} models and snapshots")
    picture = out / preset / "results" / "scatter.png"
    write_png(picture, scatter(points))
    print(f"figure: {picture}")
    return rows


if __name__ == "__main__":
    command(main)
