"""How it is asked for: `composcope COMMAND ...`; one file a command, imported when it is called.

Each file of this room is opened by what its --help says, a line to paste first, and has a frozen
dataclass `Args` and `main(args)`; one whose defaults depend on its arguments also has `parse`."""

import importlib.metadata
import inspect
import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Annotated, Any, Union

import tyro

from composcope.errors import InputError, check_name, foreign, sentences
from composcope.options import check_numbers

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
FLAT = (tyro.conf.OmitArgPrefixes,)  # options of a dataclass in Args have no prefix
USAGE = """composcope scenes --objects 1-3 --num 12 --size 128 --out scenes

commands:
{}

composcope COMMAND --help says more.
Tab completion: eval "$(composcope --tyro-print-completion bash)", or zsh or tcsh."""


def main() -> None:
    name, *rest = sys.argv[1:] or ["--help"]
    with sentences():
        if name in ("-h", "--help"):
            lines = (f"  {name:10} {what}" for name, what in COMMANDS.items())
            print(USAGE.format("\n".join(lines)))
        elif name == "--version":
            print(importlib.metadata.version("composcope"))
        elif name == COMPLETION:
            print_completion(rest)
        else:
            check_name("command", name, COMMANDS)
            command = module_of(name)
            args = arguments(command, name, rest)
            check_numbers(args)
            # A colon may name code of the user's (FILE.py:NAME), told by its own file and line.
            with foreign(*(word.rpartition("=")[2] for word in rest if ":" in word)):
                command.main(args)


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"composcope.cli.{name}")


def arguments(command: ModuleType, name: str, words: Sequence[str]) -> Any:
    """The Args of a command line."""
    how: dict[str, Any] = {"prog": f"composcope {name}", "description": inspect.getdoc(command)}
    parse = partial(tyro.cli, command.Args, config=FLAT, **how)
    return command.parse(words, parse) if hasattr(command, "parse") else parse(args=words)


def print_completion(words: Sequence[str]) -> None:
    """Print the shell's completion of all commands and their options."""
    if list(words) not in (["bash"], ["zsh"], ["tcsh"]):
        raise InputError(f"{COMPLETION} takes a shell: bash, zsh or tcsh")
    kinds = [
        Annotated[module_of(name).Args, tyro.conf.subcommand(name, description=what)]
        for name, what in COMMANDS.items()
    ]
    commands: Any = Union[tuple(kinds)]  # noqa: UP007
    tyro.cli(commands, prog="composcope", args=[COMPLETION, *words], config=FLAT)
