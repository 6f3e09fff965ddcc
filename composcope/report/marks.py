"""Numbers, names of models and verdicts as a reader sees them: "7 [6, 8]", "exp2 + local
conditions", ✓."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from composcope.report.looks import label
from composcope.results import Estimate, Row
from composcope.study.effects import Side
from composcope.study.paper import PaperValue
from composcope.study.table import (
    BY_NAME,
    GUIDED,
    LOCAL,
    MACHINES,
    STUDENT,
    TRAINED_FURTHER,
    labelled,
)

EXP1, EXP2, EXP2L = Side("exp1"), Side("exp2"), Side("exp2l")
EXP2_LOCAL = Side("exp2", LOCAL)
TEACHER = Side("exp2", GUIDED)  # of the student
DISTILLED = Side(STUDENT)
TAUGHT = "no images: taught by exp2 + guided local conditions"
POLICIES = (EXP1, Side("random"), Side("drop-one"), EXP2)  # Table 2, in the paper's order


def two(value: Any) -> str:
    """Two significant digits; whole numbers, but for round-off, as they are."""
    if value is None:
        return "not measured"
    if isinstance(value, str | bool):
        return str(value)
    if not math.isfinite(value):  # such as the correlation of numbers that are all alike
        return f"{value:g}"
    if abs(value - round(value)) <= 1e-12 * abs(value):
        return f"{round(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    rounded = float(f"{value:.1e}")  # 0.996 has as many digits as 1.0
    digits = 1 - math.floor(math.log10(abs(rounded)))
    return f"{value:.{max(digits, 0)}f}"


def with_interval(row: Row | Estimate | None) -> str:
    """A value with its 95 % interval: "7 [6, 8]"."""
    if row is None or row.value is None:
        return "not measured"
    return two(row.value) + ("" if row.low is None else f" [{two(row.low)}, {two(row.high)}]")


def in_percent(row: Row) -> str:
    """A share with its 95 % interval: "12 [5, 24] %"."""
    low, high = row.estimate.ends
    return f"{100 * row.estimate.value:.0f} [{100 * low:.0f}, {100 * high:.0f}] %"


def name(side: Side) -> str:
    if side.intervention is None:
        return f"{side.run}{side.sigmas.words}"
    radius = side.intervention.radius
    within = "" if radius in (None, LOCAL.radius) else f" ({two(radius)})"
    return f"{label(side.run, side.intervention.name)}{within}"


def kind(side: Side) -> str:
    """What the model is, in a few words: "one label, patch-local"."""
    if side.intervention:
        return "the same weights, not retrained"
    if side.run not in BY_NAME:
        return {**TRAINED_FURTHER, **MACHINES, STUDENT: TAUGHT}.get(side.run, "")
    return labelled(BY_NAME[side.run].config())


def and_list(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


@dataclass(frozen=True)
class Verdict:
    """Whether ours agrees with the paper: a mark that does not rest on colour, and words."""

    mark: str
    words: str
    numbered: str = ""  # the words after a number: "5 in agreement"


NOT_MEASURED = Verdict("–", "not measured", "not measured")


def verdict(row: Row | None, paper: Sequence[PaperValue]) -> Verdict:
    """Whether one of the paper's values lies in our interval; if not, on which side ours is."""
    if row is None or row.value is None:
        return NOT_MEASURED
    if not paper:
        return Verdict("·", "not in the paper")
    low, high = row.estimate.ends
    if any(low <= value.high and value.low <= high for value in paper):
        return Verdict("✓", "agrees", "in agreement")
    if row.max_K is not None and high >= row.max_K:
        return Verdict("…", "asked no further", "asked no further")
    if high < min(value.low for value in paper):
        return Verdict("▼", "ours is lower", "lower here")
    if low > max(value.high for value in paper):
        return Verdict("▲", "ours is higher", "higher here")
    return Verdict("✗", "differs", "different")


SEEN = {
    "apart": Verdict("✓", "yes, intervals apart", "as expected with intervals apart"),
    "overlap": Verdict("≈", "yes, but intervals overlap", "as expected with overlapping intervals"),
    "no": Verdict("✗", "no", "not as expected"),
    "not measured": NOT_MEASURED,
}


def paper_of(side: Side) -> Sequence[PaperValue]:
    """The paper's K_max of a run; of what is done to it at sampling time there is none."""
    return BY_NAME[side.run].paper_k_max if side.run in BY_NAME and not side.intervention else ()


def paper_words(paper: Sequence[PaperValue]) -> str:
    """ "9 in v1, 7 in v3" """
    return ", ".join(f"{value} in {value.version}" for value in paper)
