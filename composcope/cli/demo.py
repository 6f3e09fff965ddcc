"""composcope demo --out report

The main job in a few minutes: a sheet of scenes; the shipped models asked for 1, 3, 6 and 9
objects, counted live; where their scores look; and the page with every number that ships with
them."""

from dataclasses import dataclass
from pathlib import Path

from PIL.Image import Image

from composcope import LocalConditions, Rules, load, render, sample
from composcope.errors import InputError
from composcope.evaluation import evaluate
from composcope.files import SHIPPED, write_png
from composcope.locality import locality
from composcope.report.material import material
from composcope.report.page import write_page
from composcope.report.sheets import sheet
from composcope.report.words import headline
from composcope.results import Row, add_rows, where
from composcope.results.samples import K_SHOWN
from composcope.study.shipped import ships

# What is drawn live: a shipped model, and whether its conditions are made local at sampling time.
DRAWN = (("exp1", False), ("exp2", False), ("exp2", True), ("exp2l", False))
LOOKED_AT = ("exp1", "exp2")


@dataclass(frozen=True)
class Args:
    out: Path = Path("report")  # folder of the page and its pictures
    num: int = 4  # images drawn for each number of objects
    steps: int = 12  # steps of the sampler
    seed: int = 0  # of the noise


def main(args: Args) -> None:
    if args.num < 1 or args.steps < 2:
        raise InputError("--num is at least 1, --steps at least 2")
    # The same demo goes on where it was stopped; another one begins anew.
    live = args.out / "live" / f"{args.num}-{args.steps}-{args.seed}"
    write_png(args.out / "scenes.png", scenes_sheet())
    print(f"scenes with their labels: {args.out / 'scenes.png'}")
    for run, local in DRAWN:
        if ships(run):
            add_rows(live / "rows.jsonl", draw_live(run, local, args, live))
    for run in filter(ships, LOOKED_AT):
        add_rows(live / "rows.jsonl", looked(run, args.seed, live))
    found = material(SHIPPED, [live])
    path = write_page(args.out / "index.html", found)
    print(headline(found.rows))
    print(f"open {path}; ask the models yourself: composcope explore")


def draw_live(run: str, local: bool, args: Args, live: Path) -> list[Row]:
    """Figure 1, live: 1, 3, 6 and 9 of the paper's places, counted; and a line in the terminal."""
    model = LocalConditions(load(run)) if local else load(run)
    name = f"{run} with local conditions" if local else run
    rows = evaluate(model, K_SHOWN, args.num, steps=args.steps, seed=args.seed, keep=live / name)
    found = [f"asked {row.K}: {row.value:.1f} there" for row in where(rows, what="length/found")]
    print(f"{name}: {', '.join(found)}")
    return rows


def looked(run: str, seed: int, live: Path) -> list[Row]:
    """Figure 2, live and coarse: a few noise levels, a few samples."""
    rows = locality(load(run), levels=5, num=2, seed=seed, keep=live / f"where {run} looks")
    for row in where(rows, what="locality/conditional_locality"):
        print(f"{run}: conditional locality {row.estimate}, chance {row.chance:.2f}")
    return rows


def scenes_sheet(count: int = 24) -> Image:
    """Scenes of 1 to 10 objects, a red dot at the place each object is labelled with."""
    each = [Rules(objects=(1 + i * 10 // count, 1 + i * 10 // count)) for i in range(count)]
    scenes = [sample(0, i, rules) for i, rules in enumerate(each)]
    return sheet(render(scenes, (160, 120)), [scene.places for scene in scenes], columns=6)
