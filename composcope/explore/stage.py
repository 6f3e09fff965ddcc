"""The models on the stage: what they are asked, how they draw and are judged, and what a pixel of
theirs looks at.

Everything is computed by the functions that the commands call; here they only meet. This file runs
in the worker."""

import base64
import io
import logging
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from composcope.diffusion.denoiser import Denoiser
from composcope.diffusion.sample import Step, noise, walk
from composcope.errors import InputError
from composcope.evaluation.detect import detect
from composcope.explore.models import Model, Run, open_model, shipped
from composcope.explore.pixel import at_pixel
from composcope.explore.requests import Described, Look, Picture, Sample, picture_of
from composcope.explore.together import together
from composcope.explore.verdict import verdict
from composcope.locality.influence import effects, without_each_denoised
from composcope.locality.jacobian import pixel_gradients
from composcope.locality.profile import centred_square, near, near_chance

KEPT = 2**26  # bytes of states that are kept for being looked at
log = logging.getLogger("composcope.explore")


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
    def load(runs: Sequence[str], conditioner: str | None = None) -> "Models":
        """Those named, or those that ship; what cannot be loaded is left out, with a sentence in
        the log."""
        models: list[Model] = []
        left_out: list[str] = []
        for run in runs or shipped():
            try:
                model = open_model(run, conditioner)
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
        index = nearest_level(levels[:-1], request.sigma)
        sigma = float(levels[index])
        x = (yield from self.state(model, picture, request.steps, index))[None]
        denoiser = together(model.drawer, [picture])
        conditioner, conditions = model.asked(picture)
        cond = rows_of(model, [picture])
        seen = at_pixel(model.drawer, picture, request.pixel)
        gradient = pixel_gradients(seen, x, sigma, cond, [request.pixel])[0, 0].numpy()
        square = centred_square(gradient[None].astype(np.float64), request.pixel)[0]
        yield {}
        x0 = each_denoised(denoiser, x, sigma, conditioner, conditions, picture.seed)
        maps = effects(x0).numpy()
        images = [png(image) for image in model.drawer.decode(x0)]
        acting = zip(conditions, maps, images[1:], strict=True)
        yield {
            "sigma": sigma,
            "step": index,
            "pixel": request.pixel,
            "image": images[0],
            "gradient": map_numbers(gradient),
            "square": int(square),
            "influences": [acts(*one, request.pixel) for one in acting],
            **local_share(model, conditions, maps),
        }


def each_denoised(
    denoiser: Denoiser, x: Tensor, sigma: float, conditioner: Any, conditions: tuple, seed: int
) -> Tensor:
    """One noisy image, denoised with all conditions, then without each of them."""
    if conditioner is None:
        with torch.no_grad():
            return denoiser(x, torch.full((1,), sigma), None)
    return without_each_denoised(denoiser, x, sigma, conditioner, [conditions], seed)[0]


def acts(condition: Any, one: np.ndarray, without: str, pixel: tuple[int, int]) -> dict:
    """What a condition does: everywhere, at the pixel, and the image without it."""
    here = float(one[pixel])
    return {
        "condition": condition_json(condition),
        "here": here,
        "map": map_numbers(one),
        "without": without,
    }


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


def nearest_level(levels: Tensor, sigma: float) -> int:
    """The index of the noise level nearest to sigma, as ratios go."""
    wanted = torch.tensor(max(sigma, float(levels[-1])))
    return int((levels.log() - wanted.log()).abs().argmin())


def condition_json(condition: Any) -> Any:
    """A condition as JSON: a place, or a word without where it stands."""
    return getattr(condition, "text", condition)


def map_numbers(one: np.ndarray) -> list[list[float]]:
    """A map to four digits of its greatest value."""
    peak = float(np.abs(one).max())
    decimals = 4 - int(np.floor(np.log10(peak))) if peak > 0 else 0
    return np.round(one.astype(np.float64), decimals).tolist()


def png(image: np.ndarray) -> str:
    """A picture as PNG in base64."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG", compress_level=1)
    return base64.b64encode(out.getvalue()).decode()
