"""The study as one table: which runs there are, what the paper reports for each, and which
comparisons it makes.

    run      = a Config by its experiment and changes, the figure it serves, what is measured on it
    paper    = the paper's K_max and what it draws at K = 0, by model and training
    effect   = a finding as a comparison: a measurement of one run is larger than of another

Plan, report, README and docs read this table. A row is found by its coordinates; names are only
ever compared whole."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from composcope.errors import InputError
from composcope.results import Row, where
from composcope.runs.config import Config, configure

# ------------------------------------------------------------------------------------------------
# What the paper counted by eye, eight images a setting.

Version = Literal["v1", "v3"]  # v1 also stands for v2, which has the same numbers
Kind = tuple[str, str, str]  # conditioner, labels, net


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper, or a range of them; `extras`: so many objects beside those that were
    asked for."""

    low: int
    high: int
    version: Version = "v1"
    extras: tuple[int, int] | None = None

    def __str__(self) -> str:
        number = spelled(self.low, self.high)
        return number if self.extras is None else f"{number}+({spelled(*self.extras)})"


def spelled(low: int, high: int) -> str:
    """As the paper writes a range: "0-2", and "9" where it is one number."""
    return f"{low}" if low == high else f"{low}-{high}"


def v1(low: int, high: int | None = None, extras: tuple[int, int] | None = None) -> PaperValue:
    return PaperValue(low, low if high is None else high, "v1", extras)


def v3(value: int) -> PaperValue:
    return PaperValue(value, value, "v3")


EXP1: Kind = ("grid", "all", "global")
EXP2: Kind = ("grid", "one", "global")
EXP3: Kind = ("list", "all", "global")
EXP2L: Kind = ("grid", "one", "local")
EXP3L: Kind = ("list", "all", "local")
COLOR: Kind = ("color", "all", "global")
RANDOM: Kind = ("grid", "random", "global")
DROP_ONE: Kind = ("grid", "all_but_one", "global")
# The paper's exp3 of v1 is exp2l here, as in v3.
PAPER_K_MAX: dict[
    tuple[Kind, int], tuple[PaperValue, ...]
] = {  # Tables 1 and 2, by the most objects of training
    (EXP1, 1): (v1(1),),
    (EXP1, 2): (v1(5),),
    (EXP1, 3): (v1(9), v3(7)),
    (EXP1, 4): (v1(10),),
    (EXP1, 5): (v1(10),),
    (EXP1, 6): (v1(11),),
    (EXP2, 1): (v1(1), v3(1)),
    (EXP2, 2): (v1(1, extras=(0, 1)),),
    (EXP2, 3): (v1(1, extras=(0, 2)), v3(2)),
    (EXP2, 4): (v1(1, extras=(0, 3)),),
    (EXP2, 5): (v1(1, extras=(0, 4)), v3(3)),
    (EXP2, 6): (v1(1, extras=(0, 5)),),
    (EXP2L, 1): (v1(6), v3(5)),
    (EXP2L, 3): (v1(9, extras=(0, 2)), v3(9)),
    (EXP2L, 5): (v1(10, extras=(0, 2)), v3(10)),
    (EXP3, 3): (v3(3),),
    (EXP3L, 3): (v3(9),),
    (COLOR, 1): (v1(1),),
    (COLOR, 3): (v1(4),),
    (COLOR, 5): (v1(7),),
    (RANDOM, 2): (v1(3),),
    (RANDOM, 3): (v1(5),),
    (RANDOM, 4): (v1(6),),
    (RANDOM, 5): (v1(8),),
    (RANDOM, 6): (v1(9),),
    (DROP_ONE, 3): (v1(3, extras=(0, 1)),),
    (DROP_ONE, 4): (v1(8, extras=(0, 1)),),
    (DROP_ONE, 5): (v1(9, extras=(0, 1)),),
    (DROP_ONE, 6): (v1(10, extras=(0, 1)),),
}
PAPER_NONE_ASKED: dict[
    tuple[Kind, int], tuple[PaperValue, ...]
] = {  # Table 2: objects typically drawn at K = 0
    (EXP1, 1): (v1(0, 1),),
    (EXP1, 2): (v1(0),),
    (EXP1, 3): (v1(0),),
    (EXP1, 4): (v1(0),),
    (EXP1, 5): (v1(0),),
    (EXP1, 6): (v1(0),),
    (EXP2, 2): (v1(0, 2),),
    (EXP2, 3): (v1(0, 3),),
    (EXP2, 4): (v1(1, 4),),
    (EXP2, 5): (v1(0, 5),),
    (EXP2, 6): (v1(1, 6),),
    (RANDOM, 2): (v1(0, 1),),
    (RANDOM, 3): (v1(0, 3),),
    (RANDOM, 4): (v1(0, 4),),
    (RANDOM, 5): (v1(0, 4),),
    (RANDOM, 6): (v1(0, 4),),
    (DROP_ONE, 3): (v1(0, 1),),
    (DROP_ONE, 4): (v1(0, 1),),
    (DROP_ONE, 5): (v1(0, 1),),
    (DROP_ONE, 6): (v1(0, 1),),
}


def paper_key(config: Config) -> tuple[Kind, int] | None:
    """Where a model stands in the paper's tables: scenes from one object on, and patches smaller
    than the image.

    Of patches as wide as the image section E.3 gives no number."""
    wide = config.net == "local" and covers(config)
    if config.objects[0] != 1 or wide:
        return None
    return (config.conditioner, config.labels, config.net), config.objects[1]


def covers(config: Config) -> bool:
    """Whether every patch of a local net is as wide as the image."""
    return 2 * config.architecture.radius + 1 >= config.architecture.grid_size


# ------------------------------------------------------------------------------------------------
# The runs.

LOCATIONS_ASKED = 12  # the largest K: the paper has so many test locations
COLORS_ASKED = 8
TOLERANCE = 0.1  # of the image's side: the paper's test places are that far apart
STEPS = 12  # of the sampler: samples do not change from there on (LOG.md)
IMAGES_EACH = 48  # for each K
LOCALITY_SAMPLES = 16
EARLIER = ("early", "middle")
BOTH = ("evaluate", "locality")
COLORED = ("evaluate", "features")  # colours have no places


@dataclass(frozen=True)
class Intervention:
    """On a trained model at sampling time; `radius` in image sides, where it has one."""

    name: str
    radius: float | None = None


LOCAL = Intervention("local", 1.5 / 8)
INTERVENTIONS = (
    LOCAL,
    Intervention("local", 1 / 8),
    Intervention("local", 2.2 / 8),
    Intervention("smooth"),
    Intervention("annealed"),
    Intervention("own"),
    Intervention("composed"),
)


@dataclass(frozen=True)
class Run:
    """One training run of the study and what is measured on it."""

    name: str
    experiment: str
    shows: str  # the figures and tables of the paper it serves
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the experiment's Config
    measures: tuple[str, ...] = BOTH
    snapshots: tuple[str, ...] = ()  # measured beside the final one
    ways: tuple[str, ...] = ()  # of choosing conditions, beside the usual one
    interventions: tuple[Intervention, ...] = ()
    num: int = IMAGES_EACH
    optional: bool = False  # trained when all others are
    # More changes, at one preset's scale.
    by_preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def config(self, preset: str = "laptop") -> Config:
        return configure(
            self.experiment, preset, {**self.changes, **self.by_preset.get(preset, {})}
        )

    @property
    def max_K(self) -> int:
        return COLORS_ASKED if self.config().conditioner == "color" else LOCATIONS_ASKED

    @property
    def paper_k_max(self) -> tuple[PaperValue, ...]:
        key = paper_key(self.config())
        return PAPER_K_MAX.get(key, ()) if key else ()

    @property
    def paper_none_asked(self) -> tuple[PaperValue, ...]:
        key = paper_key(self.config())
        return PAPER_NONE_ASKED.get(key, ()) if key else ()


def objects(fewest: int, most: int) -> dict[str, Any]:
    return {"objects": (fewest, most)}


# Figure 1's runs go on twice as long as the others. Their middle snapshot, after as many images as
# the others have in the end, is what these are compared with.
LONG: dict[str, Mapping[str, Any]] = {"laptop": {"images": 128_000}}
# Patches of 17 of 16 cells, the paper's control, take 144 GFLOP for one evaluation of the denoiser
# at 64x64: eleven hours for one curve on one core. The laptop has 9 of 8 cells, and the network of
# exp2 on them.
WIDE: dict[str, Mapping[str, Any]] = {
    "smoke": {"radius": 2},
    "laptop": {"grid_size": 8, "radius": 4, "mult": (1, 1), "blocks": 1, "attention": (9,)},
}
# fmt: off
RUNS = (
    Run("exp1",       "exp1",  "Fig. 1, 2, 8, 10; Tables 1, 2", snapshots=EARLIER,
        ways=("random",), by_preset=LONG),
    Run("exp2",       "exp2",  "Fig. 1, 2, 10; Tables 1, 2", snapshots=EARLIER,
        interventions=INTERVENTIONS, by_preset=LONG),
    Run("exp3",       "exp3",  "Fig. 1, 2; Table 1 (v3)", snapshots=EARLIER),
    Run("exp3s",      "exp3s", "not in the paper: the list with one map for all slots"),
    Run("random",     "exp1",  "Table 2, random number of labels", {"labels": "random"}),
    Run("drop-one",   "exp1",  "Table 2, all but one label", {"labels": "all_but_one"}),
    Run("exp1-seed1", "exp1",  "the same from another seed", {"seed": 1}),
    Run("exp2-seed1", "exp2",  "the same from another seed", {"seed": 1}),
    Run("exp3-seed1", "exp3",  "the same from another seed", {"seed": 1}),
    Run("exp2l",      "exp2l", "Fig. 1, 2, 10; Table 1", snapshots=EARLIER, by_preset=LONG),
    Run("exp3l",      "exp3l", "Table 1 (v3)"),
    Run("exp2l-wide", "exp2l", "E.3, patches as wide as the image", {"radius": 8},
        num=16, by_preset=WIDE),
    Run("exp1-one",   "exp1",  "Fig. 4; Table 1, one object", objects(1, 1)),
    Run("exp2l-one",  "exp2l", "Fig. 4; Table 1, one object", objects(1, 1)),
    Run("exp1-five",  "exp1",  "Fig. 8; Table 1, 1-5 objects", objects(1, 5)),
    Run("color",      "color", "Fig. 5, 11; Table 1, colour", objects(1, 5), measures=COLORED),
    Run("exp1-two",   "exp1",  "Fig. 8; Table 1, 1-2 objects", objects(1, 2), optional=True),
    Run("exp1-four",  "exp1",  "Fig. 8; Table 1, 1-4 objects", objects(1, 4), optional=True),
    Run("exp1-six",   "exp1",  "Fig. 8; Table 1, 1-6 objects", objects(1, 6), optional=True),
    Run("color-three","color", "Table 1, colour, 1-3 objects", objects(1, 3), measures=COLORED,
        optional=True),
    Run("exp2-penalty","exp2", "not in the paper: far influence penalised", {"penalty": 0.1},
        optional=True),
    Run("exp3-penalty","exp3", "not in the paper: far influence penalised", {"penalty": 0.1},
        optional=True),
)
# fmt: on
BY_NAME = {run.name: run for run in RUNS}
STUDENT = "exp2-student"  # exp2 with local conditions, distilled: composcope distill makes it

LABELS = {
    "all": "all labels",
    "one": "one label",
    "random": "a random number of labels",
    "all_but_one": "all but one",
}


def chosen(names: Sequence[str] | None = None) -> tuple[Run, ...]:
    """The runs of these names; without names all that are not optional."""
    if names is None:
        return tuple(run for run in RUNS if not run.optional)
    for name in names:
        if name not in BY_NAME:
            raise InputError(
                f"--only: there is no run {name!r} in the study; the runs are {', '.join(BY_NAME)}"
            )
    return tuple(BY_NAME[name] for name in names)


def trained_on(config: Config) -> str:
    """In words: "1-3 objects, list, all labels, patch-local"."""
    fewest, most = config.objects
    scenes = f"{fewest}-{most} objects" if most > 1 else "1 object"
    parts = [scenes, config.conditioner, LABELS[config.labels]]
    if config.net == "local":
        parts.append("patches as wide as the image" if covers(config) else "patch-local")
    return ", ".join(parts)


# ------------------------------------------------------------------------------------------------
# The effects.


@dataclass(frozen=True)
class Measurement:
    """Rows by what they measure; of several, such as one a pixel, the mean is taken."""

    words: str
    what: str
    coordinates: Mapping[str, Any] = field(default_factory=dict)


K_MAX = Measurement("K_max, the paper's rule", "length/k_max", {"rule": "paper"})
FILLED_6 = Measurement("places filled of 6 asked", "length/found", {"K": 6})
FILLED_9 = Measurement("places filled of 9 asked", "length/found", {"K": 9})
CONDITIONAL = Measurement("conditional locality", "locality/conditional_locality")
SQUARE = Measurement(
    "pixels across that a pixel looks at", "locality/square", {"states": "trajectory"}
)
LENGTH = (K_MAX, FILLED_6, FILLED_9)


@dataclass(frozen=True)
class Band:
    """Noise levels, low <= sigma < high."""

    words: str
    low: float
    high: float


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

    def __str__(self) -> str:
        means = (
            ""
            if self.intervention is None
            else f" with the intervention {self.intervention.name!r}"
        )
        return f"{self.run}{means}{self.sigmas.words}"


def at_equal_images(sides: Sequence[Side], rows: Sequence[Row]) -> tuple[Side, ...]:
    """The same runs, each after as many images as the one with fewest has in the end, where a
    snapshot was measured there."""
    measured = [where(rows, run=side.run, what="length/found") for side in sides]
    ends = [row.images for own in measured for row in own if row.snapshot == "final" and row.images]
    fewest = min(ends, default=None)
    equal = []
    for side, own in zip(sides, measured, strict=True):
        snapshots = {row.snapshot for row in own if row.images == fewest and row.snapshot}
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


def each(
    where: str, says: str, above: Side | str, below: Side | str, by: Sequence[Measurement]
) -> list[Effect]:
    """The same finding by several measurements."""
    first, second = (Side(side) if isinstance(side, str) else side for side in (above, below))
    return [Effect(where, says, first, second, measurement) for measurement in by]


MACHINES = ("local one-label machine", "ideal one-label machine")  # experiments/score_machines
MIDDLE_1 = Side("exp1", sigmas=MIDDLE_NOISE)
MIDDLE_2 = Side("exp2", sigmas=MIDDLE_NOISE)
# fmt: off
EFFECTS = (
    # Length generalization.
    *each("Fig. 1", "A grid of all locations composes further than one with a single label",
          "exp1", "exp2", LENGTH),
    *each("Fig. 1", "The same from another seed", "exp1-seed1", "exp2-seed1", LENGTH),
    *each("Fig. 1 (v3)", "A grid composes further than a list of locations",
          "exp1", "exp3", LENGTH),
    *each("Fig. 1 (v3)", "The same from another seed", "exp1-seed1", "exp3-seed1", LENGTH),
    *each("ours", "A list whose slots share one map composes further than a list",
          "exp3s", "exp3", LENGTH),
    *each("Fig. 1", "A patch-local network composes where the global one did not",
          "exp2l", "exp2", LENGTH),
    *each("Table 1 (v3)", "The same with a list of locations", "exp3l", "exp3", LENGTH),
    *each("Fig. 4", "Trained on single objects, the patch-local network draws more",
          "exp2l-one", "exp1-one", LENGTH),
    *each("Fig. 8", "Trained on up to five objects a model goes further than on three",
          "exp1-five", "exp1", LENGTH),
    *each("E.3", "Patches as wide as the image fail again", "exp2l", "exp2l-wide", LENGTH),
    *each("E.3", "The same without training", *MACHINES, LENGTH),
    *each("Table 2", "All labels go further than a random number of them",
          "exp1", "random", LENGTH),
    *each("Table 2", "A random number of labels goes further than all but one",
          "random", "drop-one", LENGTH),
    *each("Table 2", "All but one label go further than a single one", "drop-one", "exp2", LENGTH),
    *each("ours", "Local conditions at sampling time mend a model",
          Side("exp2", LOCAL), "exp2", LENGTH),
    *each("ours", "Distilled, the mended model composes in one pass", STUDENT, "exp2", LENGTH),
    *each("ours", "A penalty on far influence makes a model compose",
          "exp2-penalty", "exp2", LENGTH),
    *each("ours", "The same with a list of locations", "exp3-penalty", "exp3", LENGTH),
    # Locality of conditions.
    *each("Fig. 2, 10", "The model that composes is conditionally local",
          "exp1", "exp2", (CONDITIONAL,)),
    *each("Fig. 2, 10", "The same from another seed", "exp1-seed1", "exp2-seed1", (CONDITIONAL,)),
    *each("Fig. 2 (v3)", "The list model lacks that locality", "exp1", "exp3", (CONDITIONAL,)),
    *each("Fig. 2 (v3)", "The same from another seed", "exp1-seed1", "exp3-seed1", (CONDITIONAL,)),
    *each("ours", "The list whose slots share one map has it", "exp3s", "exp3", (CONDITIONAL,)),
    *each("Fig. 2", "The patch-local network has it", "exp2l", "exp2", (CONDITIONAL,)),
    *each("Fig. 2", "The patch-local network has more of it than the list model",
          "exp2l", "exp3", (CONDITIONAL,)),
    *each("ours", "The distilled model has it", STUDENT, "exp2", (CONDITIONAL,)),
    *each("ours", "A penalty on far influence brings it", "exp2-penalty", "exp2", (CONDITIONAL,)),
    *each("ours", "The same with a list of locations", "exp3-penalty", "exp3", (CONDITIONAL,)),
    # Locality of pixels: two findings that our first runs did not show.
    *each("Fig. 2 (v3)", "The list model lacks pixel locality: its pixels look further",
          "exp3", "exp1", (SQUARE,)),
    *each("Fig. 10, 12 (v1)", "Pixels delocalise at middle noise: they look further than at high",
          MIDDLE_1, Side("exp1", sigmas=HIGH_NOISE), (SQUARE,)),
    *each("Fig. 10, 12 (v1)", "Pixels delocalise at middle noise: they look further than at low",
          MIDDLE_1, Side("exp1", sigmas=LOW_NOISE), (SQUARE,)),
    *each("Fig. 10, 12 (v1)", "The same in the model with one label, against high noise",
          MIDDLE_2, Side("exp2", sigmas=HIGH_NOISE), (SQUARE,)),
)
# fmt: on


@dataclass(frozen=True)
class Comparison:
    """An effect beside what was measured. `terms` says whether it is at equal images, network and
    tolerance."""

    effect: Effect
    above: Row | None
    below: Row | None
    # Apart: larger, and the intervals do not touch.
    agrees: Literal["apart", "overlap", "no", "not measured"]
    terms: str


def compare(effect: Effect, rows: Sequence[Row], preset: str = "laptop") -> Comparison:
    """The effect in these rows: of all pairs of rows that have it, the pair that differs least; of
    several the one with most training images, so that a snapshot stands for a run that went on
    longer; then the newest."""
    choices = product(
        candidates(effect.above, effect, rows), candidates(effect.below, effect, rows)
    )
    pairs = sorted(choices, key=longest_and_newest, reverse=True)
    if not pairs:
        return Comparison(effect, None, None, "not measured", "")
    above, below = min(pairs, key=lambda pair: len(differences(*pair)))
    return Comparison(
        effect, above, below, agreement(above, below), terms(effect, above, below, preset)
    )


def candidates(side: Side, effect: Effect, rows: Sequence[Row]) -> list[Row]:
    """The rows of one side, one for each way it was measured: over pixels and noise levels it is
    their mean."""
    intervention = side.intervention
    wanted = dict(effect.measurement.coordinates)
    wanted |= {"what": effect.measurement.what, "run": side.run}
    wanted |= {"intervention": intervention.name if intervention else None}
    if intervention and intervention.radius is not None:
        wanted |= {"radius": intervention.radius}
    groups: dict[tuple, list[Row]] = {}
    for row in where(rows, **wanted):
        inside = row.sigma is None or side.sigmas.low <= row.sigma < side.sigmas.high
        if inside and row.value is not None:
            groups.setdefault(replace(row, sigma=None, pixel=None).key, []).append(row)
    return [mean_row(group) for group in groups.values()]


def mean_row(rows: Sequence[Row]) -> Row:
    """One row for many: means of the values and of the ends, at least as wide as the interval of
    the mean."""
    if len(rows) == 1:
        return rows[0]
    means: dict[str, Any] = {}
    for name in ("value", "low", "high"):
        numbers = [getattr(row, name) for row in rows]
        means[name] = None if None in numbers else sum(numbers) / len(numbers)
    return replace(rows[0], **means, sigma=None, pixel=None)


def longest_and_newest(pair: tuple[Row, Row]) -> tuple[int, str]:
    return min(row.images or 0 for row in pair), min(row.date or "" for row in pair)


def agreement(above: Row, below: Row) -> Literal["apart", "overlap", "no"]:
    first, second = above.estimate, below.estimate
    if first.value <= second.value:
        return "no"
    low = first.value if first.low is None else first.low
    high = second.value if second.high is None else second.high
    return "apart" if low > high else "overlap"


JUDGED = {
    "images": "training images",
    "tolerance": "tolerance",
    "asked": "conditions",
    "max_K": "largest K",
    "steps": "sampler steps",
}


def differences(above: Row, below: Row) -> list[str]:
    """In words: all that should be equal between two rows that are compared, and is not."""
    told = []
    for name, words in JUDGED.items():
        first, second = getattr(above, name), getattr(below, name)
        if first != second:
            told.append(f"{words} {number(first)} against {number(second)}")
    return told


def number(value: Any) -> str:
    if value is None:
        return "not known"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:.3g}"
        if isinstance(value, float)
        else str(value)
    )


@dataclass(frozen=True)
class Network:
    """What the network of a run sees, and how it is built, in words."""

    sees: str
    built: str


def network(run: str, preset: str) -> Network | None:
    """None of what is not trained."""
    if run not in BY_NAME:
        return None
    config = BY_NAME[run].config(preset)
    size = config.architecture
    cells = 2 * size.radius + 1
    sees = (
        "whole images"
        if config.net == "global"
        else f"patches of {cells} of {size.grid_size} cells"
    )
    levels = f"levels {size.mult} of width {size.width}"
    built = f"{size.blocks} blocks on {levels}, attention {size.attention}"
    return Network(sees, built)


def terms(effect: Effect, above: Row, below: Row, preset: str) -> str:
    """Whether the comparison is at equal images, network and tolerance, or what differs."""
    told = differences(above, below)
    first, second = (network(side.run, preset) for side in (effect.above, effect.below))
    if first and second and first.sees != second.sees:
        told.append(f"network on {first.sees} against {second.sees}")
    elif first and second and first.built != second.built:
        told.append(f"network of {first.built} against {second.built}")
    if told:
        return f"not equal: {'; '.join(told)}"
    equal = ["network" if first else "scenes, without training"]
    equal += [f"training images ({above.images:,})"] if above.images is not None else []
    equal += [f"tolerance ({above.tolerance:g})"] if above.tolerance is not None else []
    return f"at equal {', '.join(equal)}"
