"""composcope distill exp2 --intervention guided --out runs/exp2-student

Train a student that begins with the weights of a run and learns, from conditions alone, to give
in one pass what the run gives with an intervention in a pass for each condition and one more.
It is a run like any other: sample, evaluate, locality, report and explore take it. The same
command goes on from where it was stopped."""

from dataclasses import dataclass, field
from pathlib import Path

from composcope import options
from composcope.diffusion.distillation import Walks
from composcope.errors import InputError
from composcope.locality import intervene
from composcope.report.sheets import sheet
from composcope.runs import load, own_device
from composcope.runs.distilling import distill, student_config
from composcope.runs.training import check_ship, tell_run
from composcope.study.cost import distilled_states


@dataclass(frozen=True)
class Args:
    run: options.Run
    intervention: options.Teacher = "local"
    radius: options.Radius = None
    out: options.Dir = None  # The folder of the student; runs/RUN-student when not given.
    minutes: float = 50.0  # How long to learn, roughly, on one core; it tells how many states.
    images: options.Int = None  # States to learn from, in place of minutes.
    lr: float = 5e-3  # The learning rate; over the last quarter it falls to zero.
    batch: int = 6  # States a step.
    steps: int = 12  # Noise levels of a walk from noise to image.
    reuse: int = 4  # Times a state of high noise is learned from: with all conditions, then some.
    seed: int = 0  # Of what is asked, of the noise and of the choice of states.
    conditioner: options.Conditioner = None
    ship: options.Ship = None
    device: options.Device = field(default_factory=own_device)
    dry_run: options.DryRun = False


def main(args: Args) -> None:
    if not 0 < args.minutes < 1e6:
        raise InputError(f"--minutes {args.minutes:g}: above 0 and below a million")
    if args.batch < 1:
        raise InputError(f"--batch {args.batch}: at least one state a step")
    model = load(args.run, device=args.device, conditioner=args.conditioner)
    check_ship(args.ship, model.config.conditioner)
    teacher = intervene(model, args.intervention, args.radius)
    walks = Walks(args.steps, args.reuse)
    images = args.images
    if images is None:
        images = max(distilled_states(model.config, args.minutes, walks.views), args.batch)
    done = (args.intervention, teacher.changes.get("radius"), walks)
    config = student_config(model, images, *done, args.lr, args.batch, args.seed)
    if args.dry_run:
        print(config.json())
        return
    folder = args.out or Path("runs") / f"{model.name}-student"
    distill(model, teacher, config, folder, sheet, args.device)
    tell_run("student", folder, args.ship, args.conditioner or config.conditioner)
