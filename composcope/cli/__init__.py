"""How it is asked for: `composcope COMMAND ...`; one file a command, imported when it is called.

Each file of this room has a frozen dataclass `Args`, whose docstring opens with a line to paste,
and `main(args)`. One whose defaults depend on its arguments has `parse(words)` as well."""

import dataclasses
import importlib.metadata
import inspect
import math
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, Any, Union

import tyro

from composcope.errors import InputError, sentences

COMMANDS = {
    "demo": "what the paper says and what our models do, in a report",
    "scenes": "make CLEVR scenes: images with exact ground truth",
    "train": "train a model of the study, or any other",
    "distill": "teach a model to do in one pass what an intervention makes of it in many",
    "sample": "draw images with a trained model",
    "evaluate": "count what a model drew; K_max with an interval",
    "locality": "what every pixel of a score looks at",
    "audit": "the same of a model of your own",
    "features": "the same question in a learned basis, up to SDXL",
    "theory": "the paper's claims on distributions small enough to compute",
    "sim": "Structured Identity Mapping and Swing-by",
    "reproduce": "the whole study: train, evaluate, measure",
    "report": "rows and pictures -> one HTML page",
    "explore": "look at models in the browser",
    "models": "what comes with the package, and how far each composes",
    "rows": "what was measured, as a table, CSV, JSON or parquet",
}
COMPLETION = "--tyro-print-completion"


def usage() -> str:
    lines = "\n".join(f"  {name:10} {what}" for name, what in COMMANDS.items())
    return (
        "composcope scenes --objects 1-3 --num 12 --size 128 --out scenes\n\n"
        f"commands:\n{lines}\n\ncomposcope COMMAND --help says more.\n"
        f'Tab completion: eval "$(composcope {COMPLETION} bash)", or zsh or tcsh.'
    )


def main() -> None:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(usage())
        return
    if name == "--version":
        print(importlib.metadata.version("composcope"))
        return
    with sentences():
        if name == COMPLETION:
            complete(rest)
        elif name not in COMMANDS:
            names = ", ".join(COMMANDS)
            raise InputError(f"there is no command {name!r}; the commands are {names}")
        else:
            command = module_of(name)
            args = arguments(command, name, rest)
            check_numbers(args)
            command.main(args)


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"composcope.cli.{name}")


def arguments(command: ModuleType, name: str, words: Sequence[str]) -> Any:
    """The Args of a command line."""
    if hasattr(command, "parse"):
        return command.parse(words)
    about = inspect.getdoc(command.Args)
    return tyro.cli(command.Args, prog=f"composcope {name}", description=about, args=words)


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


def complete(words: Sequence[str]) -> None:
    """Print the shell's completion of all commands and their options."""
    if list(words) not in (["bash"], ["zsh"], ["tcsh"]):
        raise InputError(f"{COMPLETION} takes a shell: bash, zsh or tcsh")
    kinds = []
    for name, what in COMMANDS.items():
        known = tyro.conf.subcommand(name, description=what)
        kinds.append(Annotated[module_of(name).Args, known])
    flat = (tyro.conf.OmitArgPrefixes,)
    tyro.cli(Union[tuple(kinds)], prog="composcope", args=[COMPLETION, *words], config=flat)  # type: ignore[arg-type,call-overload] # noqa: UP007
