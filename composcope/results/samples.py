"""Pictures that are kept beside rows: a few images of a model, what was asked, what is there.

    samples.npz     images  uint8 [n, h, w, 3]
                    record  JSON: for each image the conditions asked, which of them are met, and
                            the places (u, v) of the objects that were found
                    frames  uint8 [step, h, w, 3], and sigmas [step]: the denoised image at every
                            noise level on the way to one of K = 6
                    made_from  JSON: the coordinates of the model's rows

Which model they show is read from `made_from`, never from the file's name or folder."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from composcope.errors import InputError
from composcope.files import parse_json
from composcope.results.arrays import read_origin, write_arrays

NAME = "samples*.npz"  # one file a model and intervention
K_SHOWN = (1, 3, 6, 9)  # the columns of Figure 1
Place = tuple[float, float]  # (u, v) in image sides from the upper left corner


@dataclass(frozen=True)
class Record:
    """What is known of the images, an entry an image; `walked` is the one the frames lead to."""

    asked: list[list[Place | str]]  # conditions: places, or words such as colours
    met: list[list[bool]]  # for each of them, whether it is there
    found: list[list[Place]]  # where objects were found
    walked: list[Place | str] = field(default_factory=list)  # what the frames were asked for


@dataclass(frozen=True)
class Samples:
    """Images of one model, with the coordinates of its rows in `about`."""

    about: Mapping[str, Any]
    images: UInt8[np.ndarray, "n h w 3"]
    record: Record
    frames: UInt8[np.ndarray, "steps h w 3"]
    sigmas: Float[np.ndarray, " steps"]

    def of(self, K: int) -> list[int]:
        """The numbers of the images that were asked for K conditions."""
        return [i for i, asked in enumerate(self.record.asked) if len(asked) == K]

    def extra(self, i: int) -> int:
        """Objects beside those that were asked for."""
        return len(self.record.found[i]) - sum(self.record.met[i])


def write_samples(path: str | Path, samples: Samples) -> None:
    arrays = {name: getattr(samples, name) for name in ("images", "frames", "sigmas")}
    record = np.array(json.dumps(asdict(samples.record)))
    write_arrays(path, samples.about, {**arrays, "record": record})


def read_samples(path: str | Path) -> Samples:
    about, arrays = read_origin(path)
    try:
        images = arrays["images"]
        frames = arrays["frames"]
        sigmas = arrays["sigmas"]
        text = str(arrays["record"])
    except KeyError as error:
        raise InputError(f"{path} does not hold samples: {error} is missing") from None
    record: Record = parse_json(text, Record, str(path))
    pictures = all(some.dtype == np.uint8 and some.ndim == 4 for some in (images, frames))
    alike = len(images) == len(record.asked) == len(record.met) == len(record.found)
    told = alike and [*map(len, record.asked)] == [*map(len, record.met)]
    if not pictures or not told or len(frames) != len(sigmas):
        words = "its images and what is said of them differ"
        raise InputError(f"{path} does not hold samples: {words}")
    return Samples(about, images, record, frames, sigmas)


def gather_samples(folders: Iterable[str | Path]) -> list[Samples]:
    """All samples below the folders, those of later folders first."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob(NAME))]
    return [read_samples(path) for path in reversed(paths)]
