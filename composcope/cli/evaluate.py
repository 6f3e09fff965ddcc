"""`composcope evaluate`: ask for 0, 1, 2, ... objects, count what is drawn: how far it holds."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from composcope.errors import InputError
from composcope.evaluation import Answers, evaluate, evaluate_images, read_answers
from composcope.files import write_png
from composcope.locality import intervene
from composcope.report.evaluation import answer_sheet, curve, table
from composcope.results import Row, add_rows, check_out, jsonl
from composcope.runs import load
from composcope.runs.model import own_device


@dataclass(frozen=True)
class Args:
    """composcope evaluate exp1 --num 48 --max 12

    Draw images of K = 0, 1, 2, ... conditions with a trained model, find the objects in them, match
    them with what was asked, and give K_max by the paper's rule and by a strict one. Images are
    kept beside the rows: the same command goes on where it was stopped. To judge images made
    elsewhere: composcope evaluate --images DIR --asked asked.json"""

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """A shipped model by name, or a run folder."""
    images: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """A folder of images to judge in place of a run."""
    asked: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """What was asked of them: JSON, {"file.png": [[u, v], ...]} or {"file.png": ["red", ...]}."""
    way: Annotated[str | None, tyro.conf.arg(metavar="WAY", aliases=["--locations"])] = None
    """In which conditions are chosen: of locations, paper (its twelve test places) or random."""
    num: int = 48
    """Images for each K."""
    max: int = 12
    """The largest K; conditions of which there are fewer stop there."""
    steps: int = 32
    """Steps of the sampler."""
    tolerance: float = 0.1
    """An object counts within this share of the image's side of the place it was asked at."""
    snapshot: str = "final"
    """early, middle or final weights of the run."""
    intervention: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """At sampling time, without training: local, smooth, annealed, own, peaks, within or composed."""
    radius: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Of the intervention, in image sides."""
    seed: int = 0
    """Of the noise and of what is asked."""
    objects: int = 3
    """With --images: the most objects of a training image (N of the paper's rule)."""
    extras: int = 0
    """With --images: the most objects that training labels left out; so many extra are no fault."""
    view: str = "full"
    """With --images: full or square, what of the official frame they show."""
    conditioner: Annotated[str | None, tyro.conf.arg(metavar="package.module:Class")] = None
    """Of a run that was trained with a conditioner from outside."""
    out: Path = Path("results/evaluate.jsonl")
    """Where the rows go; images, sheet and curve go into a folder beside it."""
    device: str = field(default_factory=own_device)
    """Where the network runs (a GPU was not tried here)."""
    json: bool = False
    """Print the rows as JSON lines."""


def main(args: Args) -> None:
    check_out(args.out)
    if (args.run is None) == (args.images is None) or (args.images is None) != (args.asked is None):
        raise InputError("give either a RUN, or --images DIR with --asked asked.json")
    rows, answers, folder = judge_images(args) if args.images else judge_run(args)
    add_rows(args.out, rows)
    write_png(folder / "sheet.png", answer_sheet(list(answers.values())))
    write_png(folder / "exact.png", curve(rows))
    console = Console(stderr=args.json, highlight=False)
    console.print(table(rows))
    console.print(f"rows: {args.out}   sheet, curve and images: {folder}", soft_wrap=True)
    console.print(f"next: composcope locality {args.run or 'exp1'}, then composcope report")
    if args.json:
        sys.stdout.write(jsonl(rows))


def judge_run(args: Args) -> tuple[list[Row], Mapping[int, Answers], Path]:
    if args.max < 0:
        raise InputError("--max is at least 0")
    model = load(str(args.run), args.snapshot, args.device, args.conditioner)
    drawer = intervene(model, args.intervention, args.radius) if args.intervention else model
    # A folder of its own for everything that changes what is drawn.
    drawn_from = dict(drawer.about), args.way, args.seed, args.steps
    digest = hashlib.sha256(repr(drawn_from).encode()).hexdigest()[:8]
    keep = args.out.with_suffix("") / f"{model.name}-{args.snapshot}-{digest}"
    rows = evaluate(
        drawer,
        range(args.max + 1),
        args.num,
        args.way,
        args.tolerance,
        args.steps,
        args.seed,
        keep,
        device=args.device,
    )
    Ks = sorted({row.K for row in rows if row.K is not None})
    return rows, {K: read_answers(keep / f"K{K}.npz") for K in Ks}, keep


def judge_images(args: Args) -> tuple[list[Row], Mapping[int, Answers], Path]:
    assert args.images is not None and args.asked is not None
    folder = args.out.with_suffix("") / args.images.resolve().name
    rows, answers = evaluate_images(
        args.images, args.asked, None, args.tolerance, args.objects, args.extras, args.view, folder
    )
    return rows, answers, folder
