"""`composcope train`: one run of the study, or any other, at the scale of a preset."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from composcope.errors import InputError
from composcope.evaluation.detector import recipes_of
from composcope.evaluation.detector import train as train_detectors
from composcope.report.sheets import sheet
from composcope.runs.config import Config, configure
from composcope.runs.model import SHIPPED
from composcope.runs.training import ship, start


@dataclass(frozen=True)
class Args:
    """composcope train exp1 --preset laptop --out runs/exp1

    Train an experiment of the paper (numbered as in its version 3), with any of its parts changed; --dry-run prints
    what the preset has for each. The same command goes on from where the run was stopped. On several processes:
    torchrun --standalone --nproc-per-node N --no-python composcope train ...
    """

    experiment: Annotated[str, tyro.conf.Positional]
    """exp1, exp2, exp3, exp2l, exp3l, color, or images (with --data); or detector, or detector32, 64, 128 alone
    (with --out, --images, --batch, --lr, --seed)."""
    preset: str = "laptop"
    """smoke, laptop, small (one GPU) or paper."""
    out: Path | None = None
    """The run folder; runs/EXPERIMENT-PRESET-SEED when not given."""
    conditioner: str | None = None
    """How conditions become a vector: grid, list, packed (a list filled from its first slot on), set, color, shape,
    vocabulary (the words found in the metadata of --data) or none."""
    labels: Literal["all", "one", "random", "all_but_one"] | None = None
    """Which objects of a training image are labelled."""
    net: Literal["global", "local"] | None = None
    """The whole image at once, or cell by cell from patches."""
    objects: tuple[int, int] | None = None
    """Fewest and most objects in a training image."""
    jitter: bool | None = None
    """Whether camera and lamps move from scene to scene."""
    data: str | None = None
    """Images on disk: a folder with metadata.jsonl or metadata.csv (file_name, and a field of conditions), CLEVR, or
    shards of `composcope scenes`; for `images` also an .npz with `images` (uint8 [n, h, w, 3]) or a folder of pictures."""
    field: str | None = None
    """Of the metadata, the field that has the conditions, if there are several."""
    seed: int | None = None
    """Of the first weights, the scenes and the noise."""
    images: int | None = None
    """How many images to train on."""
    batch: int | None = None
    """Images a step."""
    accumulate: int | None = None
    """Parts in which a process works through its share of a batch."""
    lr: float | None = None
    """The reference learning rate."""
    warmup: int | None = None
    """Images over which the learning rate rises."""
    decay: int | None = None
    """Images after which it falls as 1 / sqrt(images)."""
    P_mean: float | None = None
    """Mean of ln sigma in training."""
    P_std: float | None = None
    """Standard deviation of ln sigma in training."""
    width: int | None = None
    """Channels of the network at the highest resolution."""
    mult: tuple[int, ...] | None = None
    """Channels of each level, in widths."""
    blocks: int | None = None
    """Residual blocks of each level."""
    attention: tuple[int, ...] | None = None
    """Sides of the (folded) image at which blocks attend."""
    emb: int | None = None
    """Channels of the embedding of noise level and label, in widths."""
    grid_size: int | None = None
    """Cells along each side of the location grid."""
    radius: int | None = None
    """k of the patches of a local net: (2k + 1) cells a side."""
    plane: bool | None = None
    """The location grid as an input plane in place of the label embedding."""
    bf16: bool | None = None
    """bfloat16 autocast."""
    compile: bool | None = None
    """torch.compile."""
    channels_last: bool | None = None
    """Weights and activations in channels-last layout."""
    threads: int | None = None
    """Threads of this process."""
    init: str | None = None
    """A run folder or a model that comes with the package, whose weights are the first ones."""
    dry_run: bool = False
    """Print the configuration and stop."""
    ship: str | None = None
    """When the run is finished, add it under this name to the models that come with the package."""


def config_of(args: Args) -> Config:
    own = ("experiment", "preset", "out", "dry_run", "ship")
    return configure(
        args.experiment, args.preset, {k: v for k, v in asdict(args).items() if k not in own and v is not None}
    )


def detectors(args: Args) -> None:
    """Train what `composcope evaluate` counts with; its weights belong in composcope/models."""
    changes = {name: getattr(args, name) for name in ("images", "batch", "lr", "seed")}
    recipes = recipes_of(args.experiment, {name: value for name, value in changes.items() if value is not None})
    if args.dry_run:
        print(*recipes, sep="\n")
        return
    print(*train_detectors(args.out or Path("runs/detector"), recipes), sep="\n")


def main(args: Args) -> None:
    if args.experiment.startswith("detector"):
        detectors(args)
        return
    config = config_of(args)
    if args.ship and (Path(args.ship).name != args.ship or (SHIPPED / args.ship).exists()):
        raise InputError(f"--ship {args.ship}: not a plain name, or a model of this name is there already")
    if args.dry_run:
        print(config.json())
        return
    folder = args.out or Path("runs") / f"{args.experiment}-{args.preset}-{config.recipe.seed}"
    start(config, folder, lambda images, asked, columns: sheet(images, asked, columns=columns))
    if args.ship and int(os.environ.get("RANK", 0)) == 0:
        print(ship(folder, args.ship))
