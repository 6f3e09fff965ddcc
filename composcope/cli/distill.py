"""`composcope distill`: a student that does in one pass what an intervention makes of a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from PIL.Image import Image

from composcope.diffusion.distillation import Walks
from composcope.errors import InputError
from composcope.locality import intervene
from composcope.report.sheets import sheet
from composcope.runs import load
from composcope.runs.distilling import distill, student_config
from composcope.runs.model import SHIPPED, own_device
from composcope.runs.training import ship
from composcope.study.cost import distilled_states


@dataclass(frozen=True)
class Args:
    """composcope distill exp2 --intervention local --out runs/exp2-student

    Train a student that begins with the weights of a run and learns, from conditions alone, to give
    in one pass what the run gives with an intervention in a pass for each condition and one more.
    It is a run like any other: sample, evaluate, locality, report and explore take it. The same
    command goes on from where it was stopped.
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A shipped model by name, or a run folder."""
    intervention: Annotated[str, tyro.conf.arg(metavar="NAME")] = "local"
    """local, smooth, annealed, own, peaks, within or composed."""
    radius: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Of the intervention, in image sides."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of the student; runs/RUN-student when not given."""
    minutes: float = 50.0
    """How long to learn, roughly, on one core; the number of states is told from it."""
    images: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """States to learn from, in place of minutes."""
    lr: float = 5e-3
    """The learning rate at the beginning; it falls to zero."""
    batch: int = 16
    """States a step."""
    steps: int = 12
    """Noise levels of a walk from noise to image."""
    reuse: int = 2
    """Times that an evaluation of the teacher is learned from, on average."""
    seed: int = 0
    """Of what is asked, of the noise and of the choice of states."""
    conditioner: Annotated[str | None, tyro.conf.arg(metavar="package.module:Class")] = None
    """Of a run that was trained with a conditioner from outside."""
    ship: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """When finished, add the student under this name to the models that come with the package."""
    device: str = field(default_factory=own_device)
    """Where the network runs (a GPU was not tried here)."""
    dry_run: bool = False
    """Print the configuration and stop."""


def main(args: Args) -> None:
    if args.ship and (Path(args.ship).name != args.ship or (SHIPPED / args.ship).exists()):
        raise InputError(f"--ship {args.ship}: no plain name, or there is a model of this name")
    if not 0 < args.minutes < 1e6:
        raise InputError(f"--minutes {args.minutes:g}: above 0 and below a million")
    if args.batch < 1:
        raise InputError(f"--batch {args.batch}: at least one state a step")
    model = load(args.run, device=args.device, conditioner=args.conditioner)
    teacher = intervene(model, args.intervention, args.radius)
    walks = Walks(args.steps, args.reuse)
    images = args.images
    if images is None:
        images = max(distilled_states(model.config, args.minutes, args.reuse), args.batch)
    radius = teacher.changes.get("radius")
    config = student_config(
        model, images, args.intervention, radius, walks, args.lr, args.batch, args.seed
    )
    if args.dry_run:
        print(config.json())
        return
    folder = args.out or Path("runs") / f"{model.name}-student"

    def draw(images: np.ndarray, asked: Sequence, columns: int) -> Image:
        return sheet(images, asked, columns=columns)

    distill(model, teacher, config, folder, draw, args.device)
    print(f"the student is in {folder}   next: composcope evaluate {folder}")
    if args.ship:
        print(f"shipped as {ship(folder, args.ship)}")
