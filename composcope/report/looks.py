"""One colour and one marker for every model, the same in all figures.

Colours are Okabe and Ito's and Tol's, which colour-blind people tell apart; markers tell models of
one colour apart, and all of them in black and white."""

import zlib
from dataclasses import dataclass

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, OLIVE, WINE, TEAL = "#E69F00", "#56B4E9", "#999933", "#AA4466", "#44AA99"
VIOLET, BROWN, LIME = "#8C86D9", "#A6761D", "#66A61E"


@dataclass(frozen=True)
class Look:
    color: str
    marker: str  # as Matplotlib calls it


LOOKS = {  # by run and intervention
    ("exp1", None): Look(BLUE, "o"),
    ("exp1-seed1", None): Look(BLUE, "D"),
    ("exp1-one", None): Look(VIOLET, "v"),
    ("exp1-two", None): Look(BLUE, "<"),
    ("exp1-four", None): Look(BLUE, ">"),
    ("exp1-five", None): Look(LIME, "^"),
    ("exp1-six", None): Look(BLUE, "P"),
    ("exp2", None): Look(VERMILLION, "s"),
    ("exp2-seed1", None): Look(VERMILLION, "D"),
    ("exp2", "local"): Look(GREEN, "^"),
    ("exp2", "smooth"): Look(GREEN, "v"),
    ("exp2", "annealed"): Look(GREEN, "<"),
    ("exp2", "own"): Look(GREEN, ">"),
    ("exp2", "composed"): Look(GREEN, "X"),
    ("exp2-student", None): Look(TEAL, "*"),
    ("exp2-penalty", None): Look(VERMILLION, "^"),
    ("exp3-penalty", None): Look(ORANGE, "^"),
    ("exp2-longer", None): Look(VERMILLION, "v"),
    ("exp3-longer", None): Look(ORANGE, "v"),
    ("exp2l", None): Look(PURPLE, "D"),
    ("exp2l-one", None): Look(WINE, "v"),
    ("exp2l-wide", None): Look(BROWN, "X"),
    ("exp3", None): Look(ORANGE, "P"),
    ("exp3-seed1", None): Look(ORANGE, "D"),
    ("exp3s", None): Look(OLIVE, "p"),
    ("exp3l", None): Look(SKY, "h"),
    ("random", None): Look(TEAL, "p"),
    ("drop-one", None): Look(WINE, "h"),
    ("color", None): Look(OLIVE, "o"),
    ("color", "own"): Look(GREEN, ">"),
    ("color", "peaks"): Look(BLUE, "*"),
    ("text_control", None): Look(OLIVE, "o"),
    ("text_control", "own"): Look(GREEN, ">"),
    ("text_control", "peaks"): Look(BLUE, "*"),
    ("color-three", None): Look(OLIVE, "v"),
}
OTHERS = tuple(
    Look(color, marker)
    for marker in "o^sDvP"
    for color in (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, OLIVE, WINE, TEAL)
)


def label(run: str | None, intervention: str | None = None) -> str:
    """What a model is called wherever a reader meets it: "exp2 + local conditions"."""
    done = "local conditions" if intervention == "local" else intervention
    return " + ".join(part for part in (run, done) if part)


def look(run: str | None, intervention: str | None = None) -> Look:
    """Of a model that is not in the table, one that depends on its name alone."""
    known = LOOKS.get((run or "", intervention))
    return known or OTHERS[zlib.crc32(f"{run} {intervention}".encode()) % len(OTHERS)]
