"""Claim (Figures 1, 4; section E.3): a patch-local network composes where the global one failed,
even from one object.

    python -m composcope.experiments.local_intervention --preset laptop

Beside it what the paper does not have: the failing model with local conditions, or composed, at
sampling time."""

from pathlib import Path

from composcope.experiments import command, tell_k_max
from composcope.report.marks import name
from composcope.results import Row, where
from composcope.study.effects import EFFECTS, Side, compare
from composcope.study.plan import study_rows
from composcope.study.table import BY_NAME

RUNS = ("exp2", "exp2l", "exp3", "exp3l", "exp1-one", "exp2l-one", "exp2l-wide")


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    num: int | None = None,
    runs: tuple[str, ...] = RUNS,
) -> list[Row]:
    """K_max of every run and intervention; effects between them, and their terms."""
    rows = where(study_rows(preset, out, runs, num), what=["length/k_max", "length/found"])
    sides = [Side(run, some) for run in runs for some in (None, *BY_NAME[run].interventions)]
    tell_k_max(rows, sides)
    for effect in EFFECTS:
        if effect.above.run in runs and effect.below.run in runs:
            found = compare(effect, rows, preset)
            pair = f"{name(effect.above)} > {name(effect.below)}, {effect.measurement.words}"
            print(f"{pair}: {found.agrees}; {found.terms}")
    return rows


if __name__ == "__main__":
    command(main)
