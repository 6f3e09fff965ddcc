"""How it is asked for: `composcope COMMAND ...`; one file a command, imported when it is called.

Each file of this room has a frozen dataclass `Args`, whose docstring opens with a line to paste, and `main(args)`.
"""

import importlib.metadata
import sys

import tyro

from composcope.errors import InputError, sentences

COMMANDS = {
    "demo": "what the paper says and what our models do, in a report",
    "scenes": "make CLEVR scenes: images with exact ground truth",
    "train": "train a model (or the detector) of the study",
    "sample": "draw images with a trained model",
    "evaluate": "count what a model drew; K_max with an interval",
    "locality": "what every pixel of a score looks at",
    "features": "the same question in a learned basis, up to SDXL",
    "theory": "the paper's claims on distributions small enough to compute",
    "sim": "Structured Identity Mapping and Swing-by",
    "reproduce": "the whole study: train, evaluate, measure",
    "report": "rows and pictures -> one HTML page",
}


def usage() -> str:
    rows = "\n".join(f"  {name:10} {what}" for name, what in COMMANDS.items())
    paste = "composcope scenes --objects 1-3 --num 12 --size 128 --out scenes"
    return f"{paste}\n\ncommands:\n{rows}\n\ncomposcope COMMAND --help says more."


def main() -> None:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(usage())
        return
    if name == "--version":
        print(importlib.metadata.version("composcope"))
        return
    with sentences():
        if name not in COMMANDS:
            raise InputError(f"there is no command {name!r}; the commands are {', '.join(COMMANDS)}")
        command = importlib.import_module(f"composcope.cli.{name}")
        command.main(tyro.cli(command.Args, prog=f"composcope {name}", description=command.Args.__doc__, args=rest))
