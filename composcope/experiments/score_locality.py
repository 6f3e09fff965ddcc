"""Claim (Figures 2, 10): models that compose have local conditional scores, others have not.

    python -m composcope.experiments.score_locality --preset laptop

The scatter is over models and their early, middle and late snapshots (version 3, Figure 2 right).
"""

from pathlib import Path

from composcope.experiments import command
from composcope.files import write_png
from composcope.report.locality import correlation, dots, scatter
from composcope.results import Row, where
from composcope.study.plan import study_rows

RUNS = ("exp1", "exp2", "exp3", "exp3s", "exp2l", "exp3l")
RULES = ("paper", "strict")


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """Conditional locality of every run; the scatter against the K_max gain, its correlation."""
    rows = study_rows(preset, out, runs, num)
    for row in where(rows, what="locality/conditional_locality"):
        print(f"{row.run:12} {row.snapshot:7} conditional locality {row.estimate}")
    for rule in RULES:
        points = dots(rows, rule)
        found = correlation(points)
        if found is not None:
            picture = out / preset / "results" / f"scatter-{rule}.png"
            write_png(picture, scatter(points, rule))
            dots_of = f"over {len(points)} models and snapshots"
            print(f"rank correlation by the {rule} rule {found} {dots_of}: {picture}")
    return rows


if __name__ == "__main__":
    command(main)
