"""`composcope models`: what comes with the package."""

import json
import sys
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from composcope.study.shipped import models


@dataclass(frozen=True)
class Args:
    """composcope models

    The models that come with the package: what each was trained on, and K_max, the largest number
    of objects up to which it draws what is asked by the paper's rule, with its 95 % interval."""

    json: bool = False
    """Print JSON lines."""


def main(args: Args) -> None:
    found = models()
    if args.json:
        sys.stdout.writelines(json.dumps(line) + "\n" for line in found)
        return
    names = ("name", "conditioner", "labels", "net", "objects", "pixels", "view", "images", "K_max")
    shown = Table(*names, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for line in found:
        K_max = "" if line["K_max"] is None else f"{line['K_max']} [{line['low']}, {line['high']}]"
        shown.add_row(*(str(line[name]) for name in names[:-1]), K_max)
    console = Console(highlight=False)
    console.print(shown)
    console.print("next: composcope sample NAME, or composcope.load(NAME) in Python")
