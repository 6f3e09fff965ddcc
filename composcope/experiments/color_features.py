"""Claim (Figures 5, 11): a colour-conditioned model composes in part, and colours are disentangled
in some layers.

python -m composcope.experiments.color_features --preset laptop"""

from pathlib import Path

from composcope.experiments import command, tell_k_max
from composcope.results import Row, where
from composcope.study.effects import Side
from composcope.study.plan import study_rows

RUNS = ("color",)


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """K_max over colours, beside the disentanglement of every conditioned layer."""
    rows = study_rows(preset, out, runs, num)
    tell_k_max(rows, map(Side, runs))
    for row in where(rows, what="features/between"):
        print(f"mean cosine between colours {row.estimate}   {row.layer}, {row.level or 'output'}")
    return rows


if __name__ == "__main__":
    command(main)
