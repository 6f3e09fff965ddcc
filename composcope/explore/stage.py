"""The models on the stage: what they are asked, how they draw and are judged, and what a pixel of
theirs looks at.

Everything is computed by the functions that the commands call; here they only meet. This file runs
in the worker."""

import base64
import io
import logging
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser, Wrapper
from composcope.diffusion.sample import Step, noise, noise_levels, walk
from composcope.errors import InputError
from composcope.evaluation.detect import Found, detect
from composcope.evaluation.matching import match
from composcope.explore.requests import (
    MOST_CONDITIONS,
    Described,
    Look,
    Picture,
    Sample,
    picture_of,
)
from composcope.features.words import Words
from composcope.files import read_json
from composcope.locality.influence import influences
from composcope.locality.intervention import LocalConditions, in_turns, intervene
from composcope.locality.jacobian import pixel_gradients
from composcope.locality.neighbourhoods import Asked
from composcope.locality.profile import centred_square, near, near_chance
from composcope.runs.model import SHIPPED, find, load
from composcope.scenes.condition import SumOfParts
from composcope.study.paper import PAPER_K_MAX, paper_key
from composcope.study.table import TOLERANCE

FIELDS = ("x", "y", "color", "shape", "size", "confidence")  # of what was found
KEPT = 2**26  # bytes of states that are kept for being looked at
log = logging.getLogger("composcope.explore")


# ---------------------------------------------------------------------------------------------
# Models.


@dataclass(frozen=True, eq=False)
class Run:
    """A trained run: asked for places or names."""

    name: str
    drawer: Any

    @property
    def described(self) -> Described:
        model = self.drawer
        conditioner = model.conditioner
        places = bool(conditioner) and conditioner.has_places
        names = tuple(getattr(conditioner, "names", ()))
        helped = ("none", "local", "composed") if places else ("none", "composed")
        return Described(
            name=self.name,
            noun=conditioner.noun if conditioner else "nothing",
            asks="places" if places else "names" if names else "nothing",
            like=conditioner.like if conditioner else "",
            names=names,
            most=min(MOST_CONDITIONS, conditioner.most) if conditioner else 0,
            grid=model.config.architecture.grid_size if places else None,
            view=model.config.view,
            size=model.shape[1:],
            interventions=helped if conditioner else ("none",),
            trained=model.config.objects[1],
            labels=model.config.labels,
            weights=model.fingerprint,
            paper=paper_k_max(model.config),
        )

    def asked(self, picture: Picture) -> tuple[Any, tuple]:
        """The conditioner, and the condition set it is asked for."""
        return self.drawer.conditioner, picture.conditions

    def levels(self, steps: int) -> Tensor:
        return noise_levels(steps)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A text-to-image pipeline: asked in a sentence, whose words are its conditions. Read when it
    is first asked."""

    name: str
    folder: Path

    @cached_property
    def drawer(self) -> Any:
        from composcope.features import sdxl  # here, because diffusers takes seconds to import

        return sdxl.load(str(self.folder))

    @property
    def described(self) -> Described:
        return Described(
            name=self.name,
            noun="word",
            asks="words",
            like="a red cube on the left and a blue sphere on the right",
            names=(),
            most=0,
            grid=None,
            view=None,
            size=(self.side, self.side),
            interventions=("none",),
            trained=None,
            labels=None,
            weights=None,
            paper=None,
        )

    @property
    def side(self) -> int:
        """Rows and columns of x, which are not those of its pictures."""
        return read_json(self.folder / "unet" / "config.json", dict[str, Any])["sample_size"]

    def asked(self, picture: Picture) -> tuple[Any, tuple]:
        said = Words(picture.sentence, self.drawer.encode)
        if len(said.all) > MOST_CONDITIONS:
            raise InputError(f"sentence: more than {MOST_CONDITIONS} words that carry meaning")
        return said, said.all

    def levels(self, steps: int) -> Tensor:
        return self.drawer.levels(steps)


Model = Run | Pipeline


def paper_k_max(config: Any) -> int | None:
    """The paper's K_max for such a model, in its newest version that has one."""
    key = paper_key(config)
    values = PAPER_K_MAX.get(key, ()) if key else ()
    newest = max(values, key=lambda value: value.version, default=None)
    return newest.low if newest else None


def shipped() -> list[str]:
    """The names of the models that come with the package: runs, then pipelines."""
    runs = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
    return runs + sorted(path.parent.name for path in SHIPPED.glob("*/model_index.json"))


def read(run: str) -> Model:
    """A run folder, a shipped model by its name, or a shipped pipeline."""
    if (SHIPPED / run / "model_index.json").is_file():
        return Pipeline(run, SHIPPED / run)
    model = load(run)
    return Run(find(run).resolve().name, model)


# ---------------------------------------------------------------------------------------------
# Several columns in one batch.


@dataclass(frozen=True)
class Whole:
    """All conditions for every pixel: the neighbourhoods of a column without an intervention."""

    def subsets(self, asked: Asked) -> Tensor:
        return torch.ones(1, len(asked.parts), dtype=torch.bool, device=asked.parts.device)

    def weights(self, asked: Asked, subsets: Tensor, x0: Tensor) -> Tensor:
        return x0.new_ones(1, *asked.size)


class Together(Wrapper):
    """Columns of one model, each with neighbourhoods of its own; their passes go through the
    network as one batch."""

    def __init__(self, denoiser: Any, neighbourhoods: Sequence[Any]):
        super().__init__(denoiser)
        self.neighbourhoods = neighbourhoods

    def __call__(self, x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        if cond is None:
            return self.denoiser(x, sigma, cond)
        size = (x.shape[2], x.shape[3])
        split = self.conditioner.split
        asked = [
            Asked(split(c), self.conditioner, float(s), size)
            for c, s in zip(cond, sigma, strict=True)
        ]
        columns = list(zip(self.neighbourhoods, asked, strict=True))
        subsets = [near.subsets(a) for near, a in columns]
        conds = [s.to(cond.dtype) @ a.parts.to(cond) for s, a in zip(subsets, asked, strict=True)]
        counts = [len(s) for s in subsets]
        image = torch.repeat_interleave(torch.tensor(counts, device=x.device))
        x0 = in_turns(self.denoiser, x, sigma, image, torch.cat(conds), 256).split(counts)
        weighed = zip(columns, subsets, x0, strict=True)
        return torch.stack(
            [(near.weights(a, s, own)[:, None] * own).sum(0) for (near, a), s, own in weighed]
        )


def together(drawer: Any, pictures: Sequence[Picture]) -> Denoiser:
    """One denoiser for a batch whose rows are these pictures."""
    wrapped = [
        None if p.intervention == "none" else intervene(drawer, p.intervention, p.radius)
        for p in pictures
    ]
    if not any(wrapped):
        return drawer
    if len(wrapped) == 1:
        return cast(LocalConditions, wrapped[0])
    return Together(drawer, [one.neighbourhoods if one else Whole() for one in wrapped])


# ---------------------------------------------------------------------------------------------
# Draw, judge, look.


class States:
    """The noisy x of every step of the pictures drawn last, so that they can be looked at without
    drawing again."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[Picture, int], list[Tensor]] = OrderedDict()
        self.bytes = 0

    def keep(self, picture: Picture, steps: int, index: int, x: Tensor) -> None:
        states = self.kept.setdefault((picture, steps), [])
        self.kept.move_to_end((picture, steps))
        if index != len(states):  # drawn before
            return
        states.append(x.clone())
        self.bytes += x.nbytes
        while self.bytes > KEPT and len(self.kept) > 1:
            _, oldest = self.kept.popitem(last=False)
            self.bytes -= sum(state.nbytes for state in oldest)

    def get(self, picture: Picture, steps: int, index: int) -> Tensor | None:
        states = self.kept.get((picture, steps), ())
        return states[index] if index < len(states) else None


class Models:
    """All that can be asked."""

    def __init__(self, models: Sequence[Model], left_out: Sequence[str]):
        self.models = {model.name: model for model in models}
        self.left_out = tuple(left_out)
        self.states = States()

    @staticmethod
    def load(runs: Sequence[str]) -> "Models":
        """Those named, or those that ship; what cannot be loaded is left out, with a sentence in
        the log."""
        models: list[Model] = []
        left_out: list[str] = []
        for run in runs or shipped():
            try:
                model = read(run)
                if any(model.name == other.name for other in models):
                    raise InputError("another model has its name")
                models.append(model)
            except InputError as error:
                left_out.append(f"{run} is left out: {error}")
                log.warning(left_out[-1])
        return Models(models, left_out)

    def warm(self) -> None:
        """One look at a run: torch prepares for gradients once, and no user should wait for it."""
        run = next((model for model in self.models.values() if isinstance(model, Run)), None)
        if run:
            for _ in self.look(Look(run.name, steps=2)):
                pass

    @property
    def described(self) -> tuple[Described, ...]:
        return tuple(model.described for model in self.models.values())

    def batch(self, model: Model, pictures: Sequence[Picture], steps: int) -> Iterator[Step]:
        """The walk of pictures of one model, all in one batch."""
        x = noise([picture.seed for picture in pictures], model.drawer.shape)
        cond = rows_of(model, pictures)
        levels = model.levels(steps)
        for step in walk(together(model.drawer, pictures), x, cond, levels):
            for picture, state in zip(pictures, step.x, strict=True):
                self.states.keep(picture, steps, step.index, state)
            yield step

    def sample(self, request: Sample) -> Iterator[dict]:
        """A line for each picture at each step, then what was found in it; models take turns."""
        groups: dict[str, list[int]] = {}
        for index, picture in enumerate(request.pictures):
            groups.setdefault(picture.model, []).append(index)
        drawings = [self.drawing(self.models[name], own, request) for name, own in groups.items()]
        for lines in zip(*drawings, strict=True):
            yield from chain.from_iterable(lines)

    def drawing(self, model: Model, own: Sequence[int], request: Sample) -> Iterator[list[dict]]:
        """The lines of one step after the other, for the pictures that are one model's own."""
        pictures = [request.pictures[index] for index in own]
        for step in self.batch(model, pictures, request.steps):
            images = model.drawer.decode(step.x0)
            lines = [line_of(index, step, image) for index, image in zip(own, images, strict=True)]
            if step.index == request.steps:
                for index, picture, found in zip(own, pictures, detect(images), strict=True):
                    lines.append({"image": index, **verdict(*model.asked(picture), found)})
            yield lines

    def state(
        self, model: Model, picture: Picture, steps: int, index: int
    ) -> Generator[dict, None, Tensor]:
        """The noisy x of a picture at one step, kept or drawn again; an empty line a step."""
        kept = self.states.get(picture, steps, index)
        if kept is not None:
            return kept
        for step in self.batch(model, [picture], steps):
            if step.index == index:
                return step.x[0]
            yield {}
        raise AssertionError("a walk comes by every step")

    def look(self, request: Look) -> Iterator[dict]:
        """One line: what a pixel looks at (equation 9), what each condition does (equation 10).

        The empty lines before it are the moments at which it can be cancelled."""
        model = self.models[request.model]
        picture = picture_of(request)
        levels = model.levels(request.steps)
        index = nearest(levels[:-1], request.sigma)
        sigma = float(levels[index])
        x = (yield from self.state(model, picture, request.steps, index))[None]
        denoiser = together(model.drawer, [picture])
        conditioner, conditions = model.asked(picture)
        cond = rows_of(model, [picture])
        gradient = pixel_gradients(denoiser, x, sigma, cond, [request.pixel])[0, 0].numpy()
        square = centred_square(gradient[None].astype(np.float64), request.pixel)[0]
        yield {}
        maps = np.zeros((0, *gradient.shape))
        if conditions:
            every = influences(denoiser, x, sigma, conditioner, [conditions], picture.seed)
            maps = every[0].numpy()
            cond = conditioner.left_out(conditions, picture.seed)
        yield {}
        images = [
            png(image) for image in model.drawer.decode(each_denoised(denoiser, x, sigma, cond))
        ]
        acting = zip(conditions, maps, images[1:], strict=True)
        yield {
            "sigma": sigma,
            "step": index,
            "pixel": request.pixel,
            "image": images[0],
            "gradient": numbers(gradient),
            "square": int(square),
            "influences": [acts(*one, request.pixel) for one in acting],
            **local_share(model, conditions, maps),
        }


def each_denoised(denoiser: Denoiser, x: Tensor, sigma: float, cond: Tensor | None) -> Tensor:
    """One noisy image, denoised with each row of cond."""
    count = 1 if cond is None else len(cond)
    with torch.no_grad():
        return denoiser(x.expand(count, -1, -1, -1), torch.full((count,), sigma), cond)


def acts(condition: Any, one: np.ndarray, without: str, pixel: tuple[int, int]) -> dict:
    """What a condition does: everywhere, at the pixel, and the image without it."""
    here = float(one[pixel])
    return {"condition": name_of(condition), "here": here, "map": numbers(one), "without": without}


def rows_of(model: Model, pictures: Sequence[Picture]) -> Tensor | None:
    """The cond of each picture."""
    rows = []
    for picture in pictures:
        conditioner, conditions = model.asked(picture)
        if conditioner is None:
            return None
        rows.append(conditioner([conditions], picture.seed))
    return torch.cat(rows)


def line_of(index: int, step: Step, image: np.ndarray) -> dict:
    return {"image": index, "step": step.index, "sigma": float(step.sigma), "png": png(image)}


def verdict(conditioner: Any, conditions: Sequence, found: Sequence[Found]) -> dict:
    """What was found, and in words whether it is what was asked for."""
    things = [{name: rounded(getattr(one, name)) for name in FIELDS} for one in found]
    if not isinstance(conditioner, SumOfParts):
        return {
            "found": things,
            "verdict": f"{len(found)} object{'' if len(found) == 1 else 's'} found",
        }
    unasked = extras(conditioner, conditions, found)
    marked = [{**thing, "extra": one in unasked} for thing, one in zip(things, found, strict=True)]
    met = len(found) - len(unasked)
    words = f"asked {len(conditions)}, {met} there, {len(unasked)} extra"
    counts = {"asked": len(conditions), "there": met, "extra": len(unasked)}
    return {"found": marked, **counts, "verdict": words}


def there(conditioner: SumOfParts, conditions: Sequence, found: Sequence[Found]) -> int:
    """How many of the conditions are met."""
    return match(conditioner, conditions, found, TOLERANCE).found


def extras(conditioner: Any, conditions: Sequence, found: Sequence[Found]) -> list[Found]:
    """The objects that nobody asked for: those without which as many conditions are met, the
    farthest first."""
    met = there(conditioner, conditions, found)
    kept = list(found)
    for thing in sorted(found, key=lambda one: -away(conditioner, conditions, one)):
        fewer = [one for one in kept if one is not thing]
        if there(conditioner, conditions, fewer) == met:
            kept = fewer
    return [one for one in found if one not in kept]


def away(conditioner: Any, conditions: Sequence, thing: Found) -> float:
    """How far an object is from the nearest place that was asked for."""
    if not conditioner.has_places or not conditions:
        return 0.0
    return float(np.abs(np.array(conditions) - (thing.x, thing.y)).max(1).min())


def local_share(model: Model, conditions: Sequence, maps: np.ndarray) -> dict:
    """Conditional locality at this noise level, and its chance; only places can be near."""
    if model.described.asks != "places" or not conditions:
        return {"locality": None, "chance": None}
    places = np.array(conditions, float)
    energy = maps.astype(np.float64) ** 2
    inside = energy * near(places, maps.shape[1:])
    whole = float(energy.sum())
    return {
        "locality": float(inside.sum()) / whole if whole else None,
        "chance": near_chance(places),
    }


def nearest(levels: Tensor, sigma: float) -> int:
    """The index of the noise level nearest to sigma, as ratios go."""
    wanted = torch.tensor(max(sigma, float(levels[-1])))
    return int((levels.log() - wanted.log()).abs().argmin())


def name_of(condition: Any) -> Any:
    """A condition as JSON: a place, or a word without where it stands."""
    return getattr(condition, "text", condition)


def rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def numbers(one: np.ndarray) -> list[list[float]]:
    """A map to four digits of its greatest value."""
    peak = float(np.abs(one).max())
    decimals = 4 - int(np.floor(np.log10(peak))) if peak > 0 else 0
    return np.round(one.astype(np.float64), decimals).tolist()


def png(image: np.ndarray) -> str:
    """A picture as PNG in base64."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG", compress_level=1)
    return base64.b64encode(out.getvalue()).decode()
