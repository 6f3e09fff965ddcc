"""composcope models

The models that come with the package: what each was trained on; K_max, the largest number of
objects up to which it draws all by the paper's rule, with its 95 % interval (where training left
objects without a label, others than those asked for are not judged); places filled of 9."""

import json
from dataclasses import dataclass

from composcope.progress import tell
from composcope.study.shipped import models, models_table


@dataclass(frozen=True)
class Args:
    json: bool = False  # Print JSON lines.


def main(args: Args) -> None:
    found = models()
    lines = "".join(json.dumps(line) + "\n" for line in found)
    then = "next: composcope sample NAME, or composcope.load(NAME) in Python"
    tell(models_table(found), then, json=lines if args.json else None)
