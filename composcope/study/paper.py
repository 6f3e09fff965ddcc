"""What the paper counted by eye, eight images a setting: its K_max, and what it draws when nothing
is asked, by model and training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from composcope.runs.config import Config

Version = Literal["v1", "v3"]  # v1 also stands for v2, which has the same numbers
Kind = tuple[str, str, str]  # conditioner, labels, net


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper, or a range; `extras`: so many objects that were not asked for."""

    low: int
    high: int
    version: Version = "v1"
    extras: tuple[int, int] | None = None

    def __str__(self) -> str:
        number = range_text(self.low, self.high)
        return number if self.extras is None else f"{number}+({range_text(*self.extras)})"


def range_text(low: int, high: int) -> str:
    """As the paper writes a range: "0-2", and "9" where it is one number."""
    return f"{low}" if low == high else f"{low}-{high}"


def v1(low: int, high: int | None = None, extras: tuple[int, int] | None = None) -> PaperValue:
    return PaperValue(low, low if high is None else high, "v1", extras)


def v3(value: int) -> PaperValue:
    return PaperValue(value, value, "v3")


Table = Mapping[Kind, Mapping[int, tuple[PaperValue, ...]]]  # by the most objects of training
EXP1: Kind = ("grid", "all", "global")
EXP2: Kind = ("grid", "one", "global")
EXP3: Kind = ("list", "all", "global")
EXP2L: Kind = ("grid", "one", "local")
EXP3L: Kind = ("list", "all", "local")
COLOR: Kind = ("color", "all", "global")
RANDOM: Kind = ("grid", "random", "global")
DROP_ONE: Kind = ("grid", "all_but_one", "global")
# Tables 1 and 2, by the most objects of training; the paper's exp3 of v1 is exp2l here, as in v3.
# fmt: off
K_MAX: Table = {
    EXP1: {1: (v1(1),), 2: (v1(5),), 3: (v1(9), v3(7)), 4: (v1(10),), 5: (v1(10),), 6: (v1(11),)},
    EXP2: {1: (v1(1), v3(1)), 2: (v1(1, extras=(0, 1)),), 3: (v1(1, extras=(0, 2)), v3(2)),
           4: (v1(1, extras=(0, 3)),), 5: (v1(1, extras=(0, 4)), v3(3)),
           6: (v1(1, extras=(0, 5)),)},
    EXP2L: {1: (v1(6), v3(5)), 3: (v1(9, extras=(0, 2)), v3(9)),
            5: (v1(10, extras=(0, 2)), v3(10))},
    EXP3: {3: (v3(3),)},
    EXP3L: {3: (v3(9),)},
    COLOR: {1: (v1(1),), 3: (v1(4),), 5: (v1(7),)},
    RANDOM: {2: (v1(3),), 3: (v1(5),), 4: (v1(6),), 5: (v1(8),), 6: (v1(9),)},
    DROP_ONE: {3: (v1(3, extras=(0, 1)),), 4: (v1(8, extras=(0, 1)),),
               5: (v1(9, extras=(0, 1)),), 6: (v1(10, extras=(0, 1)),)},
}
# Table 2: objects typically drawn at K = 0.
NONE_ASKED: Table = {
    EXP1: {1: (v1(0, 1),), 2: (v1(0),), 3: (v1(0),), 4: (v1(0),), 5: (v1(0),), 6: (v1(0),)},
    EXP2: {2: (v1(0, 2),), 3: (v1(0, 3),), 4: (v1(1, 4),), 5: (v1(0, 5),), 6: (v1(1, 6),)},
    RANDOM: {2: (v1(0, 1),), 3: (v1(0, 3),), 4: (v1(0, 4),), 5: (v1(0, 4),), 6: (v1(0, 4),)},
    DROP_ONE: {3: (v1(0, 1),), 4: (v1(0, 1),), 5: (v1(0, 1),), 6: (v1(0, 1),)},
}
# fmt: on


def paper_k_max(config: Config) -> tuple[PaperValue, ...]:
    return in_table(K_MAX, config)


def paper_none_asked(config: Config) -> tuple[PaperValue, ...]:
    return in_table(NONE_ASKED, config)


def in_table(table: Table, config: Config) -> tuple[PaperValue, ...]:
    """Where a model stands in it: scenes from one object on, patches smaller than the image, and no
    penalty.

    Of patches as wide as the image section E.3 gives no number."""
    wide = config.net == "local" and covers(config)
    if config.objects[0] != 1 or wide or config.recipe.penalty:
        return ()
    kind = (config.conditioner, config.labels, config.net)
    return table.get(kind, {}).get(config.objects[1], ())


def covers(config: Config) -> bool:
    """Whether every patch of a local net is as wide as the image."""
    return 2 * config.architecture.radius + 1 >= config.architecture.grid_size
