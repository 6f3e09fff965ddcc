"""`composcope locality`: what every pixel of a model's score looks at, in pixels and in conditions."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal
from zipfile import BadZipFile

import numpy as np
import torch
import tyro
from matplotlib.figure import Figure

from composcope.diffusion.sample import noise_levels
from composcope.errors import InputError
from composcope.files import whole, write_png
from composcope.locality.audit import Audit, Level, Measured, cond_of, measure, places_of, states_at
from composcope.locality.profile import spearman
from composcope.progress import track
from composcope.report.findings import shown
from composcope.report.locality import curves, dots, heatmaps, scatter
from composcope.results import Row, add, jsonl, known, read, writable
from composcope.runs import Model, load
from composcope.runs.data import Stored, images_of
from composcope.runs.model import name_of
from composcope.scenes.condition import PAPER_LOCATIONS

RULES = "paper", "strict"  # by which K_max is told


@dataclass(frozen=True)
class Args:
    """composcope locality exp1 --noise-levels 9

    Measure a trained model at several noise levels: pixel gradients (equation 9), the influence of each condition
    (equation 10), the metrics made of them and one conditional locality; rows, a table, heatmaps (Figure 2) and curves
    (Figures 10, 12). A noise level once measured is kept: the same command goes on where it was stopped.
    The scatter over models: composcope locality --scatter results
    """

    run: Annotated[str | None, tyro.conf.Positional] = None
    """A shipped model by name, or a run folder."""
    scatter: Path | None = None
    """In place of a run: a folder with rows of `evaluate` and `locality`; draws K_max against conditional locality."""
    locations: tuple[tuple[float, float], ...] = PAPER_LOCATIONS[:4]
    """What is asked: u v pairs in [0, 1]. Their pixels and the centre are the ones looked at."""
    noise_levels: int = 9
    """How many, from sigma 80 down to 0.002, spaced as in sampling."""
    states: Literal["trajectory", "noised"] = "trajectory"
    """The model's own path from noise, or training images with noise."""
    images: Path | None = None
    """Images to put noise on in place of the run's own: an .npz with `images`, or a folder of pictures."""
    num: int = 16
    """Samples at each noise level."""
    snapshot: str = "final"
    """early, middle or final weights of the run."""
    seed: int = 0
    """Of the noise; sample i has seed + i."""
    memory: int = 256
    """Megabytes for the activations of one backward pass."""
    out: Path = Path("results/locality.jsonl")
    """Where the rows go; maps and pictures go into a folder beside it."""
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    """Where the network runs (a GPU was not tried here)."""
    json: bool = False
    """Print the rows as JSON lines."""


def main(args: Args) -> None:
    writable(args.out)
    if (args.run is None) == (args.scatter is None):
        raise InputError("give either a RUN, or --scatter FOLDER")
    if args.noise_levels < 1 or args.num < 1 or args.memory < 1:
        raise InputError("--noise-levels, --num and --memory are at least 1")
    rows = measured(args) if args.run is not None else scattered(args)
    add(args.out, rows)
    print(f"rows: {args.out}   maps and pictures: {args.out.with_suffix('')}", file=sys.stderr if args.json else None)
    if args.json:
        sys.stdout.write(jsonl(rows))


def measured(args: Args) -> list[Row]:
    model = load(str(args.run), args.snapshot, args.device)
    if model.config.conditioner == "color":
        raise InputError(f"{args.run} is asked for colours, which have no place; composcope features measures it")
    sets = [args.locations if model.conditioner else ()] * args.num
    name = name_of(args.run)
    folder = args.out.with_suffix("") / f"{name}-{args.snapshot}-{args.states}-{fingerprint(args, model)}"
    pixels = looked_at(sets[0], model.resolution)
    report = Audit(levels_of(args, model, sets, pixels, folder), pixels, places_of(sets))
    setting = {"snapshot": args.snapshot, "weights": model.fingerprint, "states": args.states, "num": args.num}
    setting |= {"K": len(sets[0]), "levels": args.noise_levels, "locations": [list(place) for place in sets[0]]}
    setting |= {"images": str(args.images)} if args.images else {}
    rows = [row_of(m, name, setting, args.seed, model.config.objects[1]) for m in report.rows]
    print(report.table(), file=sys.stderr if args.json else None)
    draw(folder, model, report, rows, sets[0])
    return rows


def fingerprint(args: Args, model: Model) -> str:
    """Eight characters that change with the weights and with all that is measured at a noise level."""
    levels = args.noise_levels if args.states == "trajectory" else None
    what = (model.fingerprint, args.locations, args.num, args.seed, levels, str(args.images))
    return hashlib.sha256(repr(what).encode()).hexdigest()[:8]


def looked_at(locations: Sequence[tuple[float, float]], side: int) -> tuple[tuple[int, int], ...]:
    """The pixel (row, column) of each location, and the centre; with no locations, three pixels on a diagonal."""
    places = [*locations, (0.5, 0.5)] if locations else [(0.5, 0.5), (0.25, 0.25), (0.75, 0.75)]
    return tuple(dict.fromkeys((min(int(v * side), side - 1), min(int(u * side), side - 1)) for u, v in places))


def levels_of(args: Args, model: Model, sets: list, pixels: tuple, folder: Path) -> tuple[Level, ...]:
    """Read from the folder what is there, measure and keep what is not."""
    sigmas = noise_levels(args.noise_levels)[:-1]
    paths = [folder / f"sigma-{float(sigma):.4f}.npz" for sigma in sigmas]
    states = None
    for index, path in track(list(enumerate(paths)), f"{name_of(args.run)}: noise levels"):
        if path.exists():
            continue
        if states is None:
            images = clean(args, model).to(args.device)
            cond = cond_of(model.conditioner, sets, images, args.seed)
            states = states_at(model, images, sigmas, cond, args.states, args.seed)
        level = measure(
            model, states[index], float(sigmas[index]), pixels, model.conditioner, sets, args.seed, args.memory << 20
        )
        with whole(path) as partial, open(partial, "wb") as file:
            np.savez(file, **asdict(level))
    return tuple(kept(path) for path in paths)


def kept(path: Path) -> Level:
    try:
        with np.load(path, allow_pickle=False) as file:
            return Level(float(file["sigma"]), file["x0"], file["gradients"], file["influences"])
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} does not hold a measured noise level ({error}); remove it to measure again") from None


def clean(args: Args, model: Model) -> torch.Tensor:
    """Images to put noise on, in the model's x; for a trajectory only their number and shape matter."""
    if args.images:
        return model.pixels.encode(Stored(args.images, model.resolution, args.seed)(0, args.num)[0])
    if args.states == "noised":
        return model.pixels.encode(images_of(model.config)(0, args.num)[0])
    return torch.zeros(args.num, *model.shape)


def row_of(measured: Measured, run: str, setting: dict, seed: int, trained: int) -> Row:
    value, low, high = map(known, (measured.estimate.value, measured.estimate.low, measured.estimate.high))
    own = {"trained": trained} if measured.name == "conditional_locality" else {}
    return Row(f"locality/{measured.name}", run, value, setting | measured.setting | own, seed, low, high)


def draw(folder: Path, model: Model, report: Audit, rows: Sequence[Row], places: Sequence) -> None:
    """Heatmaps of the means over samples, under the first sample's denoised image; and the curves."""
    levels = report.levels
    images = model.pixels.decode(torch.from_numpy(np.stack([level.x0[0] for level in levels])))
    gradients, influences = (
        np.stack([getattr(l, name).mean(0) for l in levels]) for name in ("gradients", "influences")
    )
    sigmas = [level.sigma for level in levels]
    write_png(folder / "heatmaps.png", heatmaps(sigmas, images, gradients, influences, report.pixels, places))
    write_png(folder / "curves.png", curves(rows))


def scattered(args: Args) -> list[Row]:
    """K_max gain, by both rules, against conditional locality over all models and snapshots that have both."""
    folder = Path(str(args.scatter))
    known = [row for path in sorted(folder.rglob("*.jsonl")) if path.name != "log.jsonl" for row in read(path)]
    rows = []
    for rule in RULES:
        if (found := scatter_of(known, rule)) is None:
            raise InputError(f"{folder} has both K_max and conditional locality of too few models; a scatter needs 3")
        row, figure = found
        write_png(args.out.with_suffix("") / f"scatter-{rule}.png", figure)
        words = f"by the {rule} rule {shown(row)}, {row.setting['dots']} dots"
        print(f"Spearman correlation of K_max gain and conditional locality: {words}", file=sys.stderr)
        rows.append(row)
    return rows


def scatter_of(rows: Sequence[Row], rule: str) -> tuple[Row, Figure] | None:
    """The rank correlation with its interval, and the scatter; None for fewer than three dots."""
    points = dots(rows, rule)
    if len(points) < 3:
        return None
    found = spearman(np.array([p.gain[0] for p in points]), np.array([p.locality[0] for p in points]))
    chances = [row.setting["chance"] for row in rows if row.claim == "locality/conditional_locality"]
    value = known(found.value)  # none where all gains are the same
    row = Row(f"locality/spearman_{rule}", "all", value, {"dots": len(points)}, None, found.low, found.high)
    return row, scatter(points, str(found), rule, float(np.mean(chances)))
