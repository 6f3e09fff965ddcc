"""Make the detector: scenes of 0 to 12 objects in both views, spoiled as drawn images are.

    python -m composcope.experiments.detector --size 64 --out runs/detector64

loss = -mean over objects of [ (1-p)^2 log p at a centre, (1-y)^4 p^2 log(1-p) elsewhere ]

(Zhou et al. 2019, "Objects as Points", equation 1; y is the target heat, p the answer.) It begins
with the weights that ship; the same command goes on from the last checkpoint and sees what it would
have seen. The file in the folder belongs in composcope/models."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from composcope.diffusion import checkpoint
from composcope.errors import InputError
from composcope.evaluation.accuracy import FRESH, STILL, accuracy, misjudged
from composcope.evaluation.detect import (
    CELLS,
    PARTS,
    About,
    Detector,
    Misjudged,
    find_objects,
    load_detector,
    peaks,
)
from composcope.experiments import command
from composcope.experiments.spoiling import Images, spoil
from composcope.files import content, locked, write_text
from composcope.progress import bar
from composcope.scenes.condition import CONDITIONERS
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, SHAPES, SIZES, VIEWS, Scene, Seen
from composcope.tensors import save_tensors

TOLERANCES = (0.1, 1 / 16)  # at which errors at places are measured: the study's, the paper's cell
RADIUS = 1.0  # of the target heat around a centre, in cells
Pictures = UInt8[np.ndarray, "n h w 3"]
# Scenes as the official rules make them, with camera and lamps held still, and closer together.
CROWDED = Rules(objects=(0, 12), margin=0.0, min_distance=0.1)
SCENES = (Rules(objects=(0, 10)), replace(STILL, objects=(0, 10)), CROWDED)
# Rules, and the view of what they made: a square picture of a full scene cuts objects, as pictures
# from elsewhere do. Those whose centre is in the picture count. In drawn scenes few are near its
# border, in scenes on wider ground more.
WHOLE = tuple((replace(rules, view=view), view) for rules in SCENES for view in VIEWS)
GROUNDS = (3.0, 4.0, 4.0)
CUT = tuple(
    (replace(rules, spread=ground), "square") for rules, ground in zip(SCENES, GROUNDS, strict=True)
)
KINDS = WHOLE + CUT


@dataclass(frozen=True)
class Recipe:
    """How one detector is trained."""

    size: int = 64
    images: int = 192_000
    scenes: int = 48_000  # different ones; each comes back spoiled in another way
    batch: int = 64
    lr: float = 2e-3
    widths: tuple[int, int, int] = (32, 48, 64)
    seed: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= min(self.images, self.scenes) or not self.lr > 0:
            raise InputError("a detector needs --lr above 0, and at least a batch of --images")


@dataclass(frozen=True)
class Targets:
    """The heat, and for every object its image, its cell, and what stands there."""

    heat: Float[Tensor, "n cells cells"]
    image: Int[Tensor, " objects"]
    row: Int[Tensor, " objects"]
    column: Int[Tensor, " objects"]
    offset: Float[Tensor, "objects 2"]
    color: Int[Tensor, " objects"]
    shape: Int[Tensor, " objects"]
    size: Int[Tensor, " objects"]


def draw(seed: int, number: int, kind: tuple[Rules, str]) -> Scene:
    rules, view = kind
    return replace(sample(seed, number, rules), view=view)


def shown(scene: Scene) -> Seen:
    """The objects of a scene that are to be counted: their centres are in its picture."""
    pairs = zip(scene.objects, scene.places, strict=True)
    within = [(thing, (u, v)) for thing, (u, v) in pairs if 0 <= u <= 1 and 0 <= v <= 1]
    objects, places = tuple(zip(*within, strict=True)) or ((), ())
    return Seen(objects, places)


def targets(scenes: Sequence[Scene | Seen], mirrored: bool = False) -> Targets:
    things = [thing for scene in scenes for thing in scene.objects]
    places = [place for scene in scenes for place in scene.places]
    counts = torch.tensor([len(scene.objects) for scene in scenes], dtype=torch.long)
    image = torch.repeat_interleave(counts)
    place = CELLS * torch.tensor(places, dtype=torch.float32).reshape(-1, 2)
    if mirrored:
        place[:, 0] = CELLS - place[:, 0]
    cell = place.floor().clamp(0, CELLS - 1)
    column, row = cell.long().T
    color = torch.tensor([list(COLORS).index(thing.color) for thing in things], dtype=torch.long)
    shape = torch.tensor([SHAPES.index(thing.shape) for thing in things], dtype=torch.long)
    size = torch.tensor([list(SIZES).index(thing.size) for thing in things], dtype=torch.long)
    axis = torch.arange(CELLS)
    # The heat is centred on the cell, where it is exactly 1; the offset says where in the cell.
    bump = torch.exp(-((axis - cell[..., None]) ** 2) / (2 * RADIUS**2))  # [object, (u, v), cells]
    heat = torch.zeros(len(scenes), CELLS, CELLS)
    for i, (across, down) in zip(image, bump, strict=True):
        torch.maximum(heat[i], torch.outer(down, across), out=heat[i])
    return Targets(heat, image, row, column, place - cell - 0.5, color, shape, size)


def detector_loss(
    answers: Float[Tensor, "n answers cells cells"], target: Targets
) -> Float[Tensor, ""]:
    """Focal loss of the heat; at centres, the offset's error and cross-entropy of what it is."""
    logit, objects = answers[:, 0], max(len(target.image), 1)
    p, log_p, log_not = logit.sigmoid(), F.logsigmoid(logit), F.logsigmoid(-logit)
    centre = target.heat == 1
    cold = (1 - target.heat) ** 4 * p**2 * log_not
    heat = -torch.where(centre, (1 - p) ** 2 * log_p, cold).sum() / objects
    at = answers[target.image, :, target.row, target.column]
    _, offset, color, shape, size = at.split(list(PARTS.values()), dim=1)
    if not len(target.image):
        return heat
    what = F.cross_entropy(color, target.color) + 0.5 * F.cross_entropy(shape, target.shape)
    what = what + 0.5 * F.cross_entropy(size, target.size)
    return heat + F.l1_loss(offset, target.offset) + 0.5 * what


def batch_of(recipe: Recipe, step: int) -> tuple[Images, Targets]:
    """Batch number `step`: a function of the recipe and the step alone."""
    part = step % (recipe.scenes // recipe.batch)
    scenes, images = render_batch(recipe.seed, recipe.size, recipe.batch, part)
    source = torch.Generator().manual_seed(recipe.seed + step)
    mirrored = bool(torch.rand((), generator=source) < 0.5)
    x = to_pixels(images).flip(3) if mirrored else to_pixels(images)
    return spoil(x, source), targets(list(map(shown, scenes)), mirrored)


@functools.cache
def render_batch(seed: int, size: int, batch: int, part: int) -> tuple[list[Scene], Pictures]:
    numbers = range(part * batch, (part + 1) * batch)
    scenes = [draw(seed, i, KINDS[i % len(KINDS)]) for i in numbers]
    return scenes, render(scenes, size=size)


def to_pixels(images: Pictures) -> Images:
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    return x.contiguous(memory_format=torch.channels_last) / 255


class Training:
    """The state of a training: network, its average, Adam, and the step.

    Not checkpoint.State, which keeps parameters alone: batch norm's running means are buffers."""

    def __init__(self, recipe: Recipe, folder: Path, first: Detector | None = None):
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.checkpoints = folder / "checkpoints"
        self.step = 0
        self.steps = recipe.images // recipe.batch
        self.net = Detector(recipe.size, recipe.widths)
        if first is not None:
            self.net.load_state_dict(first.state_dict())
        self.average = deepcopy(self.net).eval()
        self.nets = nn.ModuleDict({"net": self.net, "average": self.average})
        self.adam = torch.optim.AdamW(self.net.parameters(), recipe.lr, weight_decay=1e-2)
        keep_recipe(recipe, folder / "recipe.json")
        if kept := checkpoint.latest(self.checkpoints):
            self.resume(*kept)

    def advance(self) -> float:
        """One step; the rate warms up over 100 and then falls to zero as a cosine does."""
        done = self.step / self.steps
        rate = self.recipe.lr * min((self.step + 1) / 100, 1) * (1 + math.cos(math.pi * done)) / 2
        self.adam.param_groups[0]["lr"] = rate
        images, target = batch_of(self.recipe, self.step)
        value = detector_loss(self.net(images), target)
        self.adam.zero_grad()
        value.backward()
        self.adam.step()
        self.step += 1
        self.follow(min(0.998, self.step / (self.step + 10)))
        return value.item()

    @torch.no_grad()
    def follow(self, keep: float) -> None:
        states = self.average.state_dict().values(), self.net.state_dict().values()
        for mine, new in zip(*states, strict=True):
            mine.copy_(new if mine.dtype == torch.long else new.lerp(mine, keep))

    def tensors(self) -> dict[str, Tensor]:
        state = self.adam.state_dict()["state"]
        moments = {f"adam.{i}.{k}": v for i, own in state.items() for k, v in own.items()}
        return {**self.nets.state_dict(), **moments}

    def save(self) -> None:
        checkpoint.save(self.checkpoints, self.step, self.tensors())

    def resume(self, step: int, kept: Mapping[str, Tensor]) -> None:
        self.step = step
        self.nets.load_state_dict({name: kept[name] for name in self.nets.state_dict()})
        adam = self.adam.state_dict()
        for i in adam["param_groups"][0]["params"]:
            names = ("step", "exp_avg", "exp_avg_sq")
            adam["state"][i] = {name: kept[f"adam.{i}.{name}"] for name in names}
        self.adam.load_state_dict(adam)


def keep_recipe(recipe: Recipe, path: Path) -> None:
    """Beside the checkpoints, which only the training that began them goes on from."""
    told = json.dumps(asdict(recipe), indent=1) + "\n"
    if path.exists() and content(path) != told.encode():
        raise InputError(f"{path} is of another training; give another --out, or move it away")
    write_text(path, told)


def finish(training: Training) -> None:
    """The steps that are left, under a bar; a checkpoint every hundred."""
    with bar() as progress:
        task = progress.add_task("detector", total=training.steps, completed=training.step)
        smooth = None
        while training.step < training.steps:
            value = training.advance()
            smooth = value if smooth is None else 0.98 * smooth + 0.02 * value
            what = f"detector {training.recipe.size}: loss {smooth:.3f}"
            progress.update(task, completed=training.step, description=what)
            if training.step % 100 == 0 or training.step == training.steps:
                training.save()


# What is measured of it, on scenes that it was not trained on.


def calibrate(net: Detector, size: int, scenes: int) -> float:
    """The threshold with the most exact counts, on scenes as they are and on spoiled ones."""
    spaced = 2 * len(VIEWS)  # the kinds without crowds
    some = [draw(FRESH - 1, i, WHOLE[i % spaced]) for i in range(scenes)]
    clean = to_pixels(render(some, size=size)).split(128)
    source = torch.Generator().manual_seed(FRESH)
    spoiled = [spoil(x, source) for x in clean]
    with torch.inference_mode():
        heat = torch.cat([net(x)[:, 0].sigmoid() for x in (*clean, *spoiled)])
    truth = torch.tensor([len(scene.objects) for scene in some]).repeat(2)
    tried = [i / 50 for i in range(5, 40)]
    exact = [(peaks(heat, t).sum((1, 2)) == truth).float().mean().item() for t in tried]
    return tried[int(np.argmax(exact))]


def all_errors(net: Detector, threshold: float, size: int, scenes: int) -> list[Misjudged]:
    """For each kind of condition that we have, each way of choosing it, and each view."""
    kinds = {make(16).noun: make(16) for make in CONDITIONERS.values()}
    records = []
    judge = functools.partial(find_objects, net, threshold=threshold)
    for conditioner in kinds.values():
        tolerances = TOLERANCES if conditioner.has_places else TOLERANCES[:1]
        for way, view in product(conditioner.ways, VIEWS):
            records += misjudged(judge, conditioner, way, view, tolerances, size, scenes)
    return records


def main(
    size: int = 64,
    out: Path = Path("runs/detector64"),
    images: int = 192_000,
    scenes: int = 200,
    train: bool = True,
) -> Path:
    """Train the detector of images of `size` pixels further, or with --no-train measure it anew.

    scenes: on which its errors are measured, for each K, way of asking and view."""
    recipe = Recipe(size=size, images=images)
    shipped, known = load_detector(size)
    path = out / f"detector{size}.safetensors"
    with locked(out):
        net, threshold = shipped, known.threshold
        if train:
            training = Training(recipe, out, shipped)
            finish(training)
            net = training.average.half().float().eval()
            threshold = calibrate(net, size, 6 * scenes)
        spaced = {view: [kind for kind in WHOLE[:4] if kind[1] == view] for view in VIEWS}
        for name, kinds in {**spaced, "cut": CUT[:2]}.items():
            some = [draw(FRESH + 7, i, kinds[i % 2]) for i in range(5 * scenes)]
            seen = find_objects(net, render(some, size=size), threshold)
            found = accuracy(list(map(shown, some)), seen)
            right = f"{found.exact.mean():.1%} of {len(found.exact)} scenes counted exactly"
            print(f"{name}: {right}; colour right {found.colors.mean():.1%}")
        errors = all_errors(net, threshold, size, scenes)
        about = json.dumps(asdict(About(recipe.widths, threshold, tuple(errors))))
        halves = {name: value.half() for name, value in net.state_dict().items()}
        save_tensors(path, halves, {"about": about})
    print(f"the detector is {path}   next: copy it to composcope/models")
    return path


if __name__ == "__main__":
    command(main)
