"""composcope evaluate exp1 --num 48 --max 12

Draw images of K = 0, 1, 2, ... conditions with a trained model, find the objects in them, match
them with what was asked, and give K_max by the paper's rule, on all images and on eight, and by
a strict one. Images are kept beside the rows: the same command goes on where it was stopped. To
judge images made elsewhere: composcope evaluate --images DIR --asked asked.json"""

from dataclasses import dataclass, field
from pathlib import Path

from composcope import options
from composcope.errors import InputError
from composcope.evaluation import Answers, evaluate, evaluate_images, kept_answers
from composcope.files import write_pngs
from composcope.locality.intervention import perhaps_intervene
from composcope.report.evaluation import answer_sheet, curve_figure, evaluation_table
from composcope.results import Row, add_rows, check_out, own_folder, tell_rows
from composcope.runs import load, own_device


@dataclass(frozen=True)
class Args(options.Weights):
    run: options.RunOrNone = None
    images: options.Dir = None  # A folder of images to judge in place of a run.
    asked: options.File = None
    """What was asked of them: JSON, {"file.png": [[u, v], ...]} or {"file.png": ["red", ...]}."""
    way: options.Way = None
    num: int = 48  # Images for each K.
    max: int = 12  # The largest K; conditions of which there are fewer stop there.
    steps: int = 32  # Steps of the sampler.
    tolerance: float = 0.1
    """An object counts within this share of the image's side of the place it was asked at."""
    seed: int = 0  # Of the noise and of what is asked.
    objects: int = 3  # With --images: the most objects of a training image (N of the paper's rule).
    extras: int = 0  # With --images: the most objects that labels left out; these are no fault.
    view: str = "full"  # With --images: full or square, what of the official frame they show.
    out: options.Out = Path("results/evaluate.jsonl")
    device: options.Device = field(default_factory=own_device)
    json: options.Json = False


def main(args: Args) -> None:
    check_out(args.out)
    if (args.run is None) == (args.images is None) or (args.images is None) != (args.asked is None):
        raise InputError("give either a RUN, or --images DIR with --asked asked.json")
    if args.images and args.asked:
        options.check_unused(args, options.DRAWING, "is of a RUN; --images are drawn already")
        how = (args.tolerance, args.objects, args.extras, args.view)
        images, asked = args.images.resolve(), args.asked.resolve()
        folder = own_folder(args.out, images.name, images, asked, *how)
        rows, answers = evaluate_images(images, asked, None, *how, folder)
    else:
        options.check_unused(args, "objects extras view", "is of --images; a RUN has its own")
        rows, answers, folder = judge_run(args)
    add_rows(args.out, rows)
    write_pngs(folder, {"sheet": answer_sheet(list(answers.values())), "exact": curve_figure(rows)})
    then = options.line(args.conditioner, "locality", args.run or "exp1") + "; composcope report"
    tell_rows(rows, args.out, args.json, f"pictures: {folder}", then, evaluation_table(rows))


def judge_run(args: Args) -> tuple[list[Row], dict[int, Answers], Path]:
    model = load(str(args.run), args.snapshot, args.device, args.conditioner)
    drawer = perhaps_intervene(model, args.intervention, args.radius)
    way = None if args.way in getattr(model.conditioner, "ways", ())[:1] else args.way  # the usual
    drawn_from = (dict(drawer.about), way, args.seed, args.steps)
    keep = own_folder(args.out, f"{model.name}-{args.snapshot}", *drawn_from)
    how = (args.num, args.way, args.tolerance, args.steps, args.seed)
    rows = evaluate(drawer, range(args.max + 1), *how, keep, device=args.device)
    return rows, kept_answers(keep, drawer.conditioner.most), keep
