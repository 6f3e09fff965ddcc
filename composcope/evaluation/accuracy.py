"""How good the detector is, on scenes that it was not trained on: accuracy by count, and its error
at what is asked.

exact = share of images with as many objects found as there are

The detector's own error is measured with a perfect drawer, which renders just what is asked:
whatever is judged wrong there is the detector's fault."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from scipy.optimize import linear_sum_assignment

from composcope.diffusion.denoiser import ConditionSet
from composcope.errors import InputError
from composcope.evaluation.detect import (
    Found,
    Misjudged,
    detect,
    fingerprint,
    load_detector,
    nearest_size,
)
from composcope.evaluation.k_max import is_near, is_right
from composcope.evaluation.matching import match
from composcope.files import read_json, write_text
from composcope.progress import track
from composcope.scenes.parts import SumOfParts
from composcope.scenes.render import render
from composcope.scenes.rules import Rules
from composcope.scenes.scene import Scene, Seen

FRESH = 10**9  # seeds from here on are for measuring, never for training
STILL = Rules(camera_jitter=0.0, lamp_jitter=0.0)
Images = UInt8[np.ndarray, "n h w 3"]
Detect = Callable[[Images], list[list[Found]]]


class NoScene(InputError):
    """There is no scene that shows just what is asked: six objects on one spot, or a word."""


@dataclass(frozen=True)
class Accuracy:
    """By image: `objects`, and if their count is `exact`; by object: how far `apart` from the
    truth, and whether its `colors` and `shapes` are right."""

    objects: np.ndarray
    exact: np.ndarray
    apart: np.ndarray
    colors: np.ndarray
    shapes: np.ndarray


def accuracy(scenes: Sequence[Scene | Seen], found: Sequence[Sequence[Found]]) -> Accuracy:
    """Compare with the truth, objects paired one to one by distance."""
    apart: list[float] = []
    colors: list[bool] = []
    shapes: list[bool] = []
    for scene, seen in zip(scenes, found, strict=True):
        places = np.reshape([(f.x, f.y) for f in seen], (-1, 2))
        distance = np.linalg.norm(np.reshape(scene.places, (-1, 1, 2)) - places, axis=-1)
        rows, columns = linear_sum_assignment(distance)
        apart += distance[rows, columns].tolist()
        for row, column in zip(rows, columns, strict=True):
            colors.append(scene.objects[row].color == seen[column].color)
            shapes.append(scene.objects[row].shape == seen[column].shape)
    objects = np.array([len(scene.objects) for scene in scenes])
    exact = objects == [len(seen) for seen in found]
    return Accuracy(objects, exact, np.array(apart), np.array(colors), np.array(shapes))


def perfect(
    conditioner: SumOfParts,
    condition_sets: Sequence[ConditionSet],
    seeds: Sequence[int],
    rules: Rules,
    size: int,
) -> Images:
    """The perfect drawer: scenes that have just what is asked, rendered; `rules` say all but the
    number of objects."""
    pairs = zip(condition_sets, seeds, strict=True)
    try:
        scenes = [conditioner.scene(asked, seed, rules) for asked, seed in pairs]
    except InputError as error:
        raise NoScene(str(error)) from None
    return render(scenes, size)


def misjudged(
    find: Detect,
    conditioner: SumOfParts,
    way: str,
    view: str,
    tolerances: Sequence[float],
    size: int,
    scenes: int,
    Ks: Iterable[int] | None = None,
) -> list[Misjudged]:
    """How many perfect images are judged wrong for each K, half of them of a still camera; a record
    a tolerance."""
    Ks = list(range(conditioner.most + 1) if Ks is None else Ks)
    about = conditioner.noun, way, view
    kept = [tolerance if conditioner.has_places else None for tolerance in tolerances]
    none = dict.fromkeys(Ks, 0)
    records = [Misjudged(*about, one, scenes, {**none}, {**none}) for one in kept]
    for K in track(Ks, f"measuring the detector: {conditioner.noun}s, {way}, {view} view"):
        for part, rules in enumerate((Rules(view=view), replace(STILL, view=view))):
            num = (scenes + 1 - part) // 2
            first = FRESH + 1000 * K + 500 * part
            asked = conditioner.ask(K, num, first, way)
            found = find(perfect(conditioner, asked, range(first, first + num), rules, size))
            for record in records:
                pairs = zip(asked, found, strict=True)
                outcomes = [match(conditioner, *pair, record.tolerance or 0) for pair in pairs]
                record.right[K] += sum(not is_right(outcome, extras=0) for outcome in outcomes)
                record.near[K] += sum(not is_near(outcome) for outcome in outcomes)
    return records


def error_of(
    conditioner: SumOfParts,
    way: str,
    view: str,
    tolerance: float,
    shape: tuple[int, int],
    Ks: Sequence[int],
    scenes: int = 200,
    keep: Path | None = None,
) -> Misjudged:
    """The error of the detector that images of this height and width go to: as measured when it was
    made, or now.

    keep: a folder for what is measured now; what is there, or in a folder beside it, is not
        measured again."""
    size = nearest_size(*shape)
    wanted = conditioner.noun, way, view, tolerance if conditioner.has_places else None
    for known in load_detector(size)[1].errors:
        same = (known.noun, known.way, known.view, known.tolerance) == wanted
        if same and set(Ks) <= set(known.right):
            return known
    # A picture stands for all that made it: renderer, rules and conditioner.
    first = perfect(conditioner, conditioner.ask(1, 1, FRESH, way), [FRESH], STILL, size)
    basis = (*wanted, scenes, fingerprint(size), hashlib.sha256(first.tobytes()).hexdigest())
    name = f"detector-{hashlib.sha256(repr(basis).encode()).hexdigest()[:16]}.json"
    # Evaluations of other runs beside this one measure the same detector: theirs is taken.
    places = [keep / name, *sorted(keep.parent.glob(f"*/{name}"))] if keep else []
    kept: list[Misjudged] = [read_json(path, Misjudged) for path in places if path.exists()]
    error = Misjudged(*wanted, scenes, merge_errors(kept, "right"), merge_errors(kept, "near"))
    missing = [K for K in Ks if K not in error.right]
    if missing:
        kept += misjudged(detect, conditioner, way, view, (tolerance,), size, scenes, missing)
        error = replace(error, right=merge_errors(kept, "right"), near=merge_errors(kept, "near"))
        if keep:
            write_text(keep / name, json.dumps(asdict(error)))
    return error


def merge_errors(errors: Sequence[Misjudged], name: str) -> dict[int, int]:
    return {K: wrong for error in errors for K, wrong in getattr(error, name).items()}
