"""composcope train exp1 --preset laptop --out runs/exp1

Train an experiment of the paper (numbered as in its version 3) with any of its settings
changed; the defaults below are those of the experiment and preset that are given. The same
command goes on from where the run was stopped. On several processes:
torchrun --standalone --nproc-per-node N --no-python composcope train ..."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagConversionOff, Positional, arg

from composcope import options
from composcope.errors import InputError
from composcope.report.sheets import sheet
from composcope.runs.config import Config, configure
from composcope.runs.training import check_ship, start, tell_run
from composcope.scenes.condition import add_outside


@dataclass(frozen=True)
class Args:
    experiment: Positional[str]  # exp1, exp2, exp3, exp3s, exp2l, exp3l, color, or images (--data).
    config: Annotated[FlagConversionOff[Config], arg(name="")]
    preset: str = "laptop"  # smoke, laptop, small (one GPU) or paper.
    out: options.Dir = None  # The run folder; runs/EXPERIMENT-PRESET-SEED when not given.
    workers: options.Int = None
    """Processes that render images ahead; none on cores, one for each core beside GPUs."""
    dry_run: options.DryRun = False
    ship: options.Ship = None


def parse(words: Sequence[str], parsed: Callable[..., Args]) -> Args:
    """The settings of the experiment and preset on the command line, changed by the rest of it."""
    first = Args("", configure("exp1"))
    plain = [word for word in words if word not in ("-h", "--help")]
    if words and not plain:
        return parsed(args=words, default=first)
    named = parsed(args=plain, default=first)
    changed = parsed(args=plain, default=Args("", configure(named.experiment, named.preset)))
    # A patch-local network has an architecture and a recipe of its own.
    config = configure(named.experiment, named.preset, {"net": changed.config.net})
    return parsed(args=words, default=Args("", config))


def main(args: Args) -> None:
    check_ship(args.ship, args.config.conditioner)
    if args.workers is not None and not 0 <= args.workers <= 1024:
        raise InputError(f"--workers {args.workers}: from 0 to 1024 processes")
    if args.dry_run:
        print(args.config.json())
        return
    if ":" in args.config.conditioner:
        add_outside(args.config.conditioner)
    usual = Path("runs", f"{args.experiment}-{args.preset}-{args.config.recipe.seed}")
    start(args.config, args.out or usual, sheet, workers=args.workers)
    if not int(os.environ.get("RANK", 0)):
        tell_run("run", args.out or usual, args.ship, args.config.conditioner)
