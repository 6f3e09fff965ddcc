"""composcope scenes --objects 1-3 --num 1000 --size 128 --out scenes

Make CLEVR scenes: images and the JSON that says what is where. The same command goes on where
it was stopped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from composcope import options
from composcope.scenes.export import Job, export
from composcope.scenes.rules import Rules


@dataclass(frozen=True)
class Args:
    out: Path  # The folder to write to: a new one, or that of the same command.
    objects: str = "1-3"
    """How many, each number as likely: 3 or 1-3. The rules leave room for 10, with patience 12."""
    num: int = 1000  # How many images.
    size: str = "128"  # Pixels: 128 for 128x128, or 320x240; squares are squeezed from 4:3.
    view: Literal["full", "square"] = "full"
    """What of the official 4:3 frame is shown: all of it, or its centre square."""
    format: Literal["clevr", "webdataset", "parquet"] = "clevr"
    """PNGs with the official CLEVR_scenes.json, .tar shards, or .parquet shards."""
    seed: int = 0  # Scene i of a seed is always the same scene.
    fixed: bool = False  # Keep camera and lamps in place; else they move a little in each scene.


def main(args: Args) -> None:
    objects = options.whole_numbers(args.objects, "-", "--objects", "3 or 1-3")
    still: dict[str, Any] = {"camera_jitter": 0.0, "lamp_jitter": 0.0} if args.fixed else {}
    rules = Rules(objects=objects, view=args.view, **still)
    size = options.whole_numbers(args.size, "x", "--size", "128 or 320x240")
    export(Job(args.num, size, args.format, rules, args.seed), args.out)
    after = options.line(None, "train", "exp1", "--data", args.out, "--view", args.view)
    print(f"{args.num} scenes are in {args.out}   next: {after}")
