"""One colour and one marker for every model, the same in all figures.

Colours are Okabe and Ito's and Tol's, which colour-blind people tell apart; markers tell models of
one colour apart, and all of them in black and white."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from composcope.results import Row, grouped

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, OLIVE, WINE, TEAL = "#E69F00", "#56B4E9", "#999933", "#AA4466", "#44AA99"
VIOLET, BROWN, LIME = "#8C86D9", "#A6761D", "#66A61E"
MAGENTA, DEEP, SLATE, ROSE = "#C51B8A", "#8E4EC6", "#6B7F8C", "#EE6677"


@dataclass(frozen=True)
class Look:
    color: str
    marker: str  # as Matplotlib calls it


Lines = Sequence[tuple[Look, str, Sequence[Row]]]  # how each looks, its name, its rows


# Runs, or a run and what is done to it at sampling time, by colour.
# fmt: off
MARKERS: dict[str, dict[str | tuple[str, str], str]] = {
    BLUE: {"exp1": "o", "exp1-longer": "v", "exp1-seed1": "D", "exp1-two": "<", "exp1-four": ">",
           "exp1-six": "P", ("exp1", "everything"): "s"},
    VIOLET: {"exp1-one": "v"},
    LIME: {"exp1-five": "^"},
    VERMILLION: {"exp2": "s", "exp2-seed1": "D", "exp2-penalty": "^", "exp2-longer": "v"},
    GREEN: {("exp2", "local"): "^", ("exp2", "guided"): "P", ("exp2", "smooth"): "v",
            ("exp2", "annealed"): "<", ("exp2", "own"): ">", ("exp2", "composed"): "X",
            ("exp2", "everything"): "s",
            ("color", "own"): ">", ("text_control", "own"): ">"},
    ROSE: {"exp1-one-edm2": "X", "exp2-edm2": "s",
           ("color", "peaks"): "*", ("text_control", "peaks"): "*"},
    TEAL: {"random": "p"},
    MAGENTA: {"exp2-student": "*", ("color", "clusters"): "D", ("text_control", "clusters"): "D"},
    PURPLE: {"exp2l": "D"},
    DEEP: {"exp2l-one": "v"},
    WINE: {"drop-one": "h"},
    BROWN: {"exp2l-wide": "X", ("color", "everywhere"): "s", ("text_control", "everywhere"): "s"},
    ORANGE: {"exp3": "P", "exp3-seed1": "D", "exp3-penalty": "^",
             "exp3-longer": "v", ("exp3", "everything"): "s"},
    OLIVE: {"exp3s": "p"},
    SLATE: {"color": "o", "color-three": "v", "text_control": "o", ("color", "everything"): "s"},
    SKY: {"exp3l": "h", "exp1-edm2": "X", ("text_control", "words"): "P"},
}
# fmt: on
LOOKS = {
    model: Look(color, marker) for color, by in MARKERS.items() for model, marker in by.items()
}
OTHERS = tuple(
    Look(color, marker)
    for marker in "o^sDvP"
    for color in (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, OLIVE, WINE, TEAL)
)


# Interventions whose name on a command line says too little.
DONE = {
    "local": "local conditions",
    "guided": "guided local conditions",
    "everything": "guidance alone",
}


def label(run: str | None, intervention: str | None = None) -> str:
    """What a model is called wherever a reader meets it: "exp2 + local conditions"."""
    return " + ".join(part for part in (run, DONE.get(intervention or "", intervention)) if part)


def look(run: str | None, intervention: str | None = None) -> Look:
    """Of a model that is not in the table, one that depends on its name alone."""
    known = LOOKS.get((run or "", intervention) if intervention else run or "")
    return known or OTHERS[zlib.crc32(f"{run} {intervention}".encode()) % len(OTHERS)]


def by_model(rows: Sequence[Row]) -> Lines:
    """A line a model: its name and what is done to it."""
    models = grouped(rows, lambda row: (row.run, row.intervention))
    return [(look(*model), label(*model), own) for model, own in models.items()]
