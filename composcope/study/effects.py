"""The findings of the study as comparisons: a measurement of one run is larger than of another, at
equal images, network and tolerance, or it says what differs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from composcope.results import Row, grouped, where, with_value
from composcope.study import terms
from composcope.study.table import GUIDANCE, GUIDED, LOCAL, STUDENT, TOLERANCE, Intervention


@dataclass(frozen=True)
class Measurement:
    """Rows by what they measure; of several, such as one a pixel, the mean is taken."""

    words: str
    what: str
    coordinates: Mapping[str, Any] = field(default_factory=dict)


K_MAX = Measurement("K_max by the paper's rule", "length/k_max", {"rule": "paper"})
# Of models whose labels leave objects out: those that nobody asked for are not judged (Table 2).
PLACES = Measurement("K_max by places alone", "length/k_max", {"rule": "places"})
STRICT = Measurement("K_max by the strict rule", "length/k_max", {"rule": "strict"})
FILLED_3 = Measurement("places filled of 3", "length/found", {"K": 3})
FILLED_6 = Measurement("places filled of 6", "length/found", {"K": 6})
FILLED_9 = Measurement("places filled of 9", "length/found", {"K": 9})
CONDITIONAL = Measurement("conditional locality", "locality/conditional_locality")
SQUARE = Measurement("how far a pixel looks", "locality/square", {"states": "trajectory"})
LENGTH = (K_MAX, FILLED_6, FILLED_9, PLACES)
COMPARED = (K_MAX, STRICT, FILLED_3, FILLED_6, FILLED_9, CONDITIONAL)  # of two runs side by side


@dataclass(frozen=True)
class Band:
    """Noise levels, low <= sigma < high."""

    words: str
    low: float
    high: float

    def __contains__(self, sigma: float) -> bool:
        return self.low <= sigma < self.high


ALL_NOISE = Band("", 0.0, math.inf)
HIGH_NOISE = Band(" at high noise", 10.0, math.inf)
MIDDLE_NOISE = Band(" at middle noise", 0.3, 10.0)
LOW_NOISE = Band(" at low noise", 0.0, 0.3)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, what was done to it at sampling time, the noise levels
    looked at, and how far it was trained."""

    run: str
    intervention: Intervention | None = None
    sigmas: Band = ALL_NOISE
    snapshot: str = "final"

    @property
    def about(self) -> dict[str, Any]:
        """The coordinates that its rows have at any snapshot and noise level."""
        done = self.intervention
        within = {"radius": done.radius} if done and done.radius is not None else {}
        return {"run": self.run, "intervention": done.name if done else None, **within}


def side_of(run: object, intervention: str | None, radius: float | None) -> Side:
    """By the coordinates of a row."""
    return Side(str(run), Intervention(intervention, radius) if intervention else None)


def side(run: Side | str) -> Side:
    return Side(run) if isinstance(run, str) else run


def at_equal_images(sides: Sequence[Side], rows: Sequence[Row]) -> tuple[Side, ...]:
    """The same runs, each after as many images as the shortest had, where that was measured."""
    measured = [where(rows, run=side.run, what="length/found") for side in sides]
    ends = [row.images for own in measured for row in own if row.snapshot == "final" and row.images]
    fewest = min(ends, default=None)
    equal = []
    for side, own in zip(sides, measured, strict=True):
        snapshots = {row.snapshot for row in own if row.images == fewest and row.snapshot}
        # At most one snapshot of a run has so many images.
        equal.append(replace(side, snapshot=min(snapshots, default=side.snapshot)))
    return tuple(equal)


@dataclass(frozen=True)
class Effect:
    """A finding as a comparison: the measurement of `above` is larger than that of `below`."""

    where: str  # in the paper
    says: str
    above: Side
    below: Side
    measurement: Measurement = K_MAX


Finding = tuple[str, str, Side | str, Side | str]  # where in the paper, what it says, above, below
MIDDLE_1 = Side("exp1", sigmas=MIDDLE_NOISE)
# fmt: off
FURTHER: tuple[Finding, ...] = (
    ("Fig. 1", "A grid of all places composes further than one with a single label",
     "exp1", "exp2"),
    ("Fig. 1", "From another seed too, a grid of all places composes further than a single label",
     "exp1-seed1", "exp2-seed1"),
    ("Fig. 1 of v3", "A grid composes further than a list of places", "exp1", "exp3"),
    ("Fig. 1 of v3", "From another seed too, a grid composes further than a list of places",
     "exp1-seed1", "exp3-seed1"),
    ("ours", "A list whose slots share one map composes further than a list", "exp3s", "exp3"),
    ("Fig. 1", "A network that sees patches composes where one that sees the whole image did not",
     "exp2l", "exp2"),
    ("Table 1 of v3", "With a list of places too, patches compose further", "exp3l", "exp3"),
    ("Fig. 4", "Trained on single objects, a network that sees patches composes further",
     "exp2l-one", "exp1-one"),
    ("ours", "Trained on single objects, linear labels compose further than those of EDM2",
     "exp1-one", "exp1-one-edm2"),
    ("ours", "Linear labels compose further than those of EDM2", "exp1", "exp1-edm2"),
    ("ours", "With EDM2's labels too, a grid of all places composes further than a single label",
     "exp1-edm2", "exp2-edm2"),
    ("Fig. 8", "Trained on up to two objects, a model composes further than on one",
     "exp1-two", "exp1-one"),
    ("Fig. 8", "Trained on up to three objects, a model composes further than on two",
     "exp1", "exp1-two"),
    ("Fig. 8", "Trained on up to four objects, a model composes further than on three",
     "exp1-four", "exp1"),
    ("Fig. 8", "Trained on up to five objects, a model composes further than on three",
     "exp1-five", "exp1"),
    ("Fig. 8", "Trained on up to six objects, a model composes further than on four",
     "exp1-six", "exp1-four"),
    ("E.3", "Patches compose further than patches as wide as the image", "exp2l", "exp2l-wide"),
    ("E.3", "Score machines, which are not trained, compose further with patches",
     "local one-label machine", "ideal one-label machine"),
    ("Table 2", "With all labels a model composes further than with a random number of them",
     "exp1", "random"),
    ("Table 2", "With a random number of labels a model composes further than with all but one",
     "random", "drop-one"),
    ("Table 2", "With all labels but one a model composes further than with a single one",
     "drop-one", "exp2"),
    ("ours", "Local conditions at sampling time make a model compose", Side("exp2", LOCAL), "exp2"),
    ("ours", "Guidance inside local conditions takes a model further",
     Side("exp2", GUIDED), Side("exp2", LOCAL)),
    ("ours", "Guidance by itself makes a model compose", Side("exp2", GUIDANCE), "exp2"),
    ("ours", "A student of guided local conditions composes in one pass", STUDENT, "exp2"),
    ("ours", "A penalty on far influence makes a model compose", "exp2-penalty", "exp2-longer"),
    ("ours", "With a list of places too, a penalty on far influence makes a model compose",
     "exp3-penalty", "exp3-longer"),
)
LOCAL_CONDITIONS: tuple[Finding, ...] = (
    ("Fig. 2, 10", "Conditions act more locally in the model that composes", "exp1", "exp2"),
    ("Fig. 2, 10", "From another seed too, conditions act more locally in the model that composes",
     "exp1-seed1", "exp2-seed1"),
    ("ours", "With EDM2's labels too, conditions act more locally in the model that composes",
     "exp1-edm2", "exp2-edm2"),
    ("Fig. 2 of v3", "Conditions act less locally in the model with a list", "exp1", "exp3"),
    ("Fig. 2 of v3", "From another seed too, conditions act less locally with a list",
     "exp1-seed1", "exp3-seed1"),
    ("ours", "Conditions act more locally in a list whose slots share one map", "exp3s", "exp3"),
    ("Fig. 2", "Conditions act more locally in a network that sees patches", "exp2l", "exp2"),
    ("Fig. 2", "Conditions act more locally in patches than in the model with a list",
     "exp2l", "exp3"),
    ("ours", "Conditions act more locally in the student", STUDENT, "exp2"),
    ("ours", "A penalty on far influence makes conditions act more locally",
     "exp2-penalty", "exp2-longer"),
    ("ours", "With a list of places too, the penalty makes conditions act more locally",
     "exp3-penalty", "exp3-longer"),
)
LOCAL_PIXELS: tuple[Finding, ...] = (  # findings that our first runs did not show
    ("Fig. 2 of v3", "In the model with a list pixels look further", "exp3", "exp1"),
    ("Fig. 10, 12 of v1", "Pixels look further at middle noise than at high",
     MIDDLE_1, Side("exp1", sigmas=HIGH_NOISE)),
    ("Fig. 10, 12 of v1", "Pixels look further at middle noise than at low",
     MIDDLE_1, Side("exp1", sigmas=LOW_NOISE)),
    ("Fig. 10, 12 of v1", "With one label too, pixels look further at middle noise than at high",
     Side("exp2", sigmas=MIDDLE_NOISE), Side("exp2", sigmas=HIGH_NOISE)),
)
# fmt: on
MEASURED_BY = ((FURTHER, LENGTH), (LOCAL_CONDITIONS, (CONDITIONAL,)), (LOCAL_PIXELS, (SQUARE,)))
EFFECTS = tuple(
    Effect(where, says, side(above), side(below), by)
    for findings, measurements in MEASURED_BY
    for where, says, above, below in findings
    for by in measurements
)


@dataclass(frozen=True)
class Comparison:
    """An effect beside what was measured; `terms`: whether at equal terms, or what differs."""

    effect: Effect
    above: Row | None
    below: Row | None
    # Apart: larger, and the intervals do not touch.
    agrees: Literal["apart", "overlap", "no", "not measured"]
    terms: str


def compare(effect: Effect, rows: Sequence[Row], preset: str = "laptop") -> Comparison:
    """The effect in these rows: of all pairs of rows that have it, the pair that differs least; of
    several the one at the usual tolerance; then with most training images, so that a snapshot
    stands for a run that went on longer; then the newest. A detector that is not the other's is
    told, and chooses no pair."""
    first = candidates(effect.above, effect.measurement, rows)
    second = candidates(effect.below, effect.measurement, rows)
    pairs = sorted(product(first, second), key=usual_longest_newest, reverse=True)
    if effect.measurement == PLACES:
        pairs = [pair for pair in pairs if "places" in (pair[0].rule, pair[1].rule)]
    if not pairs:
        return Comparison(effect, None, None, "not measured", "")
    above, below = min(pairs, key=lambda pair: unlike(pair[0], pair[1], preset))
    said = terms.terms(above, below, preset)
    return Comparison(effect, above, below, agreement(above, below), said)


def unlike(above: Row, below: Row, preset: str) -> int:
    """In how many ways two rows differ, whichever detector counted."""
    first, second = (replace(row, detector=None) for row in (above, below))
    return len(terms.unequal(first, second, preset))


def candidates(side: Side, by: Measurement, rows: Sequence[Row]) -> list[Row]:
    """A row for each way a side was measured: over pixels and noise levels their mean."""
    known = with_value(where(rows, what=by.what, **side.about, **by.coordinates))
    if by == PLACES:  # where all are labelled, no object is left out: K_max has one reading
        known += where(rows, what=by.what, labels="all", **side.about, **K_MAX.coordinates)
    inside = [row for row in known if row.sigma is None or row.sigma in side.sigmas]
    ways = grouped(inside, lambda row: replace(row, sigma=None, pixel=None).key)
    return [mean_row(group) for group in ways.values()]


def mean_row(rows: Sequence[Row]) -> Row:
    """Means of values and of ends: at least as wide as the interval of the mean."""
    if len(rows) == 1:
        return rows[0]
    means: dict[str, Any] = {}
    for name in ("value", "low", "high"):
        numbers = [getattr(row, name) for row in rows]
        means[name] = None if None in numbers else sum(numbers) / len(numbers)
    return replace(rows[0], **means, sigma=None, pixel=None)


def usual_longest_newest(pair: tuple[Row, Row]) -> tuple[bool, list[int], str]:
    usual = all(row.tolerance in (TOLERANCE, None) for row in pair)
    return usual, sorted(row.images or 0 for row in pair), min(row.date or "" for row in pair)


def agreement(above: Row, below: Row) -> Literal["apart", "overlap", "no"]:
    first, second = above.estimate, below.estimate
    if first.value <= second.value:
        return "no"
    return "apart" if first.ends[0] > second.ends[1] else "overlap"
