"""Images with what was asked of them and what was found: in memory, and in files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from jaxtyping import UInt8

from composcope.diffusion.denoiser import ConditionSet, conditions_of
from composcope.errors import InputError
from composcope.evaluation.detect import Found, detect, detector_of
from composcope.evaluation.matching import Outcome, match
from composcope.files import parse_json, read_json
from composcope.results.arrays import read_arrays, write_arrays
from composcope.scenes.condition import CONDITIONERS
from composcope.scenes.parts import SumOfParts

Images = UInt8[np.ndarray, "n h w 3"]
APART = 100_000  # seeds of neighbouring K are this far apart


@dataclass(frozen=True)
class Answers:
    """Images of one K, the condition set each was asked for, and the objects that a detector found
    in it."""

    images: Images
    asked: list[ConditionSet]
    found: list[list[Found]]
    detector: str | None = None

    def first(self, num: int) -> "Answers":
        return Answers(self.images[:num], self.asked[:num], self.found[:num], self.detector)

    def outcomes(self, conditioner: SumOfParts, tolerance: float) -> list[Outcome]:
        pairs = zip(self.asked, self.found, strict=True)
        return [match(conditioner, asked, found, tolerance) for asked, found in pairs]


def merge_answers(kept: Answers | None, fresh: Answers) -> Answers:
    if kept is None:
        return fresh
    images = np.concatenate([kept.images, fresh.images])
    return Answers(images, kept.asked + fresh.asked, kept.found + fresh.found, fresh.detector)


def counted(images: Images, asked: Sequence[ConditionSet]) -> Answers:
    """Images, and what the detector of today finds in them."""
    return Answers(images, list(asked), detect(images), detector_of(images))


@dataclass(frozen=True)
class Record:
    """What the file of answers says of its images."""

    asked: list[list]
    found: list[list[Found]]
    detector: str | None = None  # None: one of before this was noted


def write_answers(path: str | Path, answers: Answers, source: Mapping[str, Any]) -> None:
    """Images with, as JSON, what was asked and found, and the `source` that they were made from."""
    record = Record([[*asked] for asked in answers.asked], answers.found, answers.detector)
    text = msgspec.json.encode(record).decode()
    write_arrays(path, source, {"images": answers.images, "record": np.array(text)})


def read_answers(path: str | Path, source: Mapping[str, Any] | None = None) -> Answers:
    """Answers kept before; an InputError if they were not made from `source`, where it is given."""
    arrays = read_arrays(path, source)
    try:
        images, text = arrays["images"], str(arrays["record"])
    except KeyError as error:
        raise InputError(f"{path} does not hold images of an evaluation: no {error}") from None
    record: Record = parse_json(text, Record, str(path))
    whole_set = images.dtype == np.uint8 and images.ndim == 4
    if not whole_set or not len(images) == len(record.asked) == len(record.found):
        raise InputError(f"{path} does not hold as many images as were asked for; move it away")
    asked: list[ConditionSet] = [conditions_of(given) for given in record.asked]
    return Answers(images, asked, record.found, record.detector)


def kept_answers(folder: str | Path, most: int) -> dict[int, Answers]:
    """All that is kept of one evaluation, by K, up to `most`: more than was asked for last."""
    paths = {K: Path(folder) / f"K{K}.npz" for K in range(most + 1)}
    return {K: read_answers(path) for K, path in paths.items() if path.exists()}


def read_asked(path: str | Path) -> dict[str, ConditionSet]:
    """Condition sets by the names of their images."""
    sets: Any = read_json(path, Any)
    if not isinstance(sets, dict):
        like = '{"a.png": [[0.65, 0.65]], "b.png": []}'
        raise InputError(f"{path}: what is asked goes by the names of images, as in {like}")
    for name, given in sets.items():
        if not isinstance(given, list):
            raise InputError(f"{path}, {name}: what is asked of an image is a list, not {given!r}")
    return {name: conditions_of(given) for name, given in sets.items()}


def fitting(sets: Mapping[str, ConditionSet], where: str) -> SumOfParts:
    """The first of our conditioners that takes all of these conditions, by the names of images."""
    known = [make(16) for make in CONDITIONERS.values()]
    for conditioner in known:
        if all(is_of(conditioner, conditions) for conditions in sets.values()):
            return conditioner
    for name, conditions in sets.items():
        if not any(is_of(conditioner, conditions) for conditioner in known):
            where = f"{where}, {name}"
            break
    names = ", ".join(dict.fromkeys(conditioner.noun for conditioner in known))
    raise InputError(
        f"{where}: these conditions are not all of one kind known here ({names}; a location is "
        "(u, v) within 0 to 1)"
    )


def is_of(conditioner: SumOfParts, conditions: ConditionSet) -> bool:
    """Whether a conditioner takes these conditions."""
    try:
        conditioner.parts(conditions, 0)
    except (InputError, TypeError, ValueError):
        return False
    return True


def stack_pictures(pictures: Sequence[np.ndarray], folder: Path) -> Images:
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        raise InputError(f"the images in {folder} differ in size: {sorted(shapes)}")
    return np.stack(pictures)
