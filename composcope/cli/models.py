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
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for heading in ("name", "asked by", "labels", "net", "objects", "pixels", "images", "K_max"):
        shown.add_column(heading, no_wrap=True)
    for line in found:
        K_max = "" if line["K_max"] is None else "{K_max:g} [{low:g}, {high:g}]".format(**line)
        shown.add_row(
            *(line[name] for name in ("name", "conditioner", "labels", "net", "objects")),
            f"{line['pixels']} {line['view']}",
            f"{line['images']:,}",
            K_max,
        )
    console = Console(highlight=False)
    console.print(shown)
    console.print("next: composcope sample NAME, or composcope.load(NAME) in Python")
