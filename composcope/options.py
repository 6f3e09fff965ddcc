"""Options that several commands have: the type of each, with the words that --help shows."""

import dataclasses
import math
import shlex
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from tyro.conf import Positional, arg

from composcope.errors import InputError


def open_arg(metavar: str, **more: Any) -> Any:
    """An option that may be left open; --help says no "(default: None)" of it."""
    return arg(metavar=metavar, help_behavior_hint="", **more)


# What to write, as --help shows it in place of a type, and other names of an option.
Int: TypeAlias = Annotated[int | None, open_arg("INT")]
Word: TypeAlias = Annotated[str | None, open_arg("STR")]
Dir: TypeAlias = Annotated[Path | None, open_arg("DIR")]
File: TypeAlias = Annotated[Path | None, open_arg("FILE")]
FileOrDir: TypeAlias = Annotated[Path | None, open_arg("PATH")]
Class: TypeAlias = Annotated[str | None, open_arg("FILE.py:NAME")]
Prompt: TypeAlias = Annotated[str | None, open_arg("TEXT")]
Count: TypeAlias = Annotated[int, arg(aliases=["-n"])]

# Which model, and what is done to it.
# Of interventions.
NAMES = (
    "local, guided, smooth, annealed, own, peaks, clusters, everywhere, within, composed or "
    "everything."
)
OF_RUN = "A shipped model by name, or a run folder."
OUTSIDE = "Of a run that was trained with one from outside: this, or package.module:Class."
Run: TypeAlias = Annotated[str, Positional, arg(metavar="RUN", help=OF_RUN)]
RunOrNone: TypeAlias = Annotated[str | None, Positional, open_arg("RUN", help=OF_RUN)]
Snapshot: TypeAlias = Annotated[str, arg(help="first, early, middle or final weights of the run.")]
Intervention: TypeAlias = Annotated[
    str | None, open_arg("NAME", help=f"At sampling time, without training: {NAMES}")
]
Teacher: TypeAlias = Annotated[str, arg(metavar="NAME", help=NAMES)]
Radius: TypeAlias = Annotated[
    float | None, open_arg("FLOAT", help="Of the intervention, in image sides.")
]
PIPELINE = (
    "In place of a run: a diffusers SDXL pipeline, by folder, by name on the Hub, or text_control."
)
Pipeline: TypeAlias = Annotated[str | None, open_arg("MODEL", help=PIPELINE)]
SOME = "runs of the study, separated by commas (exp1,exp2l); all but optional ones if not given"
Runs: TypeAlias = Annotated[str | None, open_arg("RUN,RUN,...", help=SOME)]
BOTH = "Two runs to put side by side, by the names their rows have, or by their folders."
TwoRuns: TypeAlias = Annotated[tuple[str, str] | None, open_arg("RUN RUN", help=BOTH)]
Conditioner: TypeAlias = Annotated[str | None, open_arg("FILE.py:Class", help=OUTSIDE)]
Device: TypeAlias = Annotated[str, arg(help="Where the network runs (a GPU was not tried here).")]

# What is asked of it.
DRAWN = 'What to draw: "0.65,0.65 0.35,0.35" (fractions of width and height), or "red blue".'
Asked: TypeAlias = Annotated[str, arg(aliases=["--locations"], help=DRAWN)]
ASKED = 'Conditions, such as "0.65,0.65 0.35,0.35" or "red blue"; else the usual four of the model.'
Conditions: TypeAlias = Annotated[str | None, open_arg("CONDITIONS", help=ASKED)]
WAY = "In which conditions are chosen: of locations, paper (its twelve test places) or random."
Way: TypeAlias = Annotated[str | None, open_arg("WAY", help=WAY)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
    """Of commands that draw with a model, or look into it."""

    snapshot: Snapshot = "final"
    intervention: Intervention = None
    radius: Radius = None
    conditioner: Conditioner = None


# By which `evaluate` draws; images that are there already are not drawn.
DRAWING = "snapshot intervention radius conditioner way num max steps seed device"

# What becomes of it.
SHIP = "When finished, add the run under this name to the models that come with the package."
Ship: TypeAlias = Annotated[str | None, open_arg("NAME", help=SHIP)]
OUT = "Where the rows go; arrays and pictures go into a folder beside it."
Out: TypeAlias = Annotated[Path, arg(help=OUT)]
Json: TypeAlias = Annotated[bool, arg(help="Print the rows as JSON lines.")]
DryRun: TypeAlias = Annotated[bool, arg(help="Print the configuration and stop.")]


def check_numbers(args: Any, name: str = "") -> None:
    """An InputError for numbers that no option can mean: not finite, or beyond 64 bits."""
    if dataclasses.is_dataclass(args):
        for field in dataclasses.fields(args):
            check_numbers(getattr(args, field.name), f"--{field.name.replace('_', '-')}")
    elif isinstance(args, list | tuple):
        for value in args:
            check_numbers(value, name)
    elif isinstance(args, float) and not math.isfinite(args):
        raise InputError(f"{name} {args}: not a finite number")
    elif isinstance(args, int) and not -(2**62) < args < 2**62:
        raise InputError(f"{name}: a number of {len(str(args))} digits is too large")
    elif isinstance(args, int) and name == "--seed" and args < 0:
        raise InputError(f"{name} {args}: a seed is 0 or more")


def check_unused(args: Any, names: str, why: str) -> None:
    """An InputError for an option that was given and would do nothing here."""
    for field in dataclasses.fields(args):
        if field.name in names.split() and getattr(args, field.name) != default_of(field):
            raise InputError(f"--{field.name.replace('_', '-')} {why}")


def default_of(field: dataclasses.Field) -> Any:
    """The value of an option that is not given."""
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def check_one(args: Any, names: str) -> None:
    """An InputError for options of which one alone can be done, where more are given."""
    if sum(bool(getattr(args, name)) for name in names.split()) > 1:
        raise InputError(f"give one of {', '.join(f'--{name}' for name in names.split())}")


def line(conditioner: str | None, *words: str | Path) -> str:
    """A command to paste into a shell, with the conditioner of its run if that is from outside."""
    outside = ["--conditioner", conditioner] if conditioner and ":" in conditioner else []
    return shlex.join(["composcope", *map(str, words), *outside])


def whole_numbers(text: str, between: str, option: str, like: str) -> tuple[int, int]:
    """One number, which stands for two equal ones, or two."""
    parts = text.split(between)
    if not 1 <= len(parts) <= 2 or not all(part.isdecimal() for part in parts):
        raise InputError(f"{option} {text!r} is not like {like}")
    return int(parts[0]), int(parts[-1])
