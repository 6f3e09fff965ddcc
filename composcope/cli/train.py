"""`composcope train`: one run of the study, or any other, at the scale of a preset."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from PIL.Image import Image

from composcope.errors import InputError
from composcope.report.sheets import sheet
from composcope.runs.config import Config, configure
from composcope.runs.model import SHIPPED
from composcope.runs.training import ship, start
from composcope.scenes.condition import outside


@dataclass(frozen=True)
class Args:
    """composcope train exp1 --preset laptop --out runs/exp1

    Train an experiment of the paper (numbered as in its version 3) with any of its settings
    changed; the defaults below are those of the experiment and preset that are given. The same
    command goes on from where the run was stopped. On several processes:
    torchrun --standalone --nproc-per-node N --no-python composcope train ..."""

    experiment: Annotated[str, tyro.conf.Positional]
    """exp1, exp2, exp3, exp3s, exp2l, exp3l, color, or images (with --data)."""
    config: Annotated[tyro.conf.FlagConversionOff[Config], tyro.conf.arg(name="")]
    preset: str = "laptop"
    """smoke, laptop, small (one GPU) or paper."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The run folder; runs/EXPERIMENT-PRESET-SEED when not given."""
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Processes that render images ahead; none on cores, one for each core beside GPUs."""
    dry_run: bool = False
    """Print the configuration and stop."""
    ship: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """When finished, add the run under this name to the models that come with the package."""


def parse(words: Sequence[str]) -> Args:
    """The settings of the experiment and preset on the command line, changed by the rest of it."""

    def parsed(config: Config, some: Sequence[str]) -> Args:
        return tyro.cli(
            Args,
            prog="composcope train",
            description=inspect.getdoc(Args),
            default=Args("", config),
            args=some,
            config=(tyro.conf.OmitArgPrefixes,),
        )

    plain = [word for word in words if word not in ("-h", "--help")]
    if words and not plain:
        return parsed(configure("exp1"), words)
    named = parsed(configure("exp1"), plain)
    changed = parsed(configure(named.experiment, named.preset), plain)
    # A patch-local network has an architecture and a recipe of its own.
    settings = configure(named.experiment, named.preset, {"net": changed.config.net})
    return parsed(settings, words)


def main(args: Args) -> None:
    config = args.config
    if args.ship and (Path(args.ship).name != args.ship or (SHIPPED / args.ship).exists()):
        raise InputError(f"--ship {args.ship}: no plain name, or there is a model of this name")
    if args.workers is not None and not 0 <= args.workers <= 1024:
        raise InputError(f"--workers {args.workers}: from 0 to 1024 processes")
    if args.dry_run:
        print(config.json())
        return
    if ":" in config.conditioner:
        outside(config.conditioner)
    folder = args.out or Path("runs") / f"{args.experiment}-{args.preset}-{config.recipe.seed}"

    def draw(images: np.ndarray, asked: Sequence, columns: int) -> Image:
        return sheet(images, asked, columns=columns)

    start(config, folder, draw, workers=args.workers)
    if int(os.environ.get("RANK", 0)):
        return
    countable = config.conditioner not in ("vocabulary", "none")
    after = "evaluate" if countable else "sample"
    print(f"the run is in {folder}   next: composcope {after} {folder}")
    if args.ship:
        print(f"shipped as {ship(folder, args.ship)}")
