"""Images and what is asked of them, without end: (seed, index) -> image in [-1, 1], condition set.

Stream draws and renders scenes as they are needed; Folder reads images and scenes from disk. Both answer
`batch(start, count)`, a pure function, so that training stops and goes on at any index.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from composcope.errors import InputError
from composcope.pictures import picture_size, read_picture
from composcope.scenes.chance import LABELS, SHUFFLE, key, shuffled
from composcope.scenes.clevr import pixel_coords, structs, to_scene
from composcope.scenes.condition import SumOfParts, labelled
from composcope.scenes.render import render, shape_of
from composcope.scenes.rules import Rules, draw
from composcope.scenes.scene import CAMERA, Scene, Seen


@dataclass(frozen=True)
class Batch:
    """Images in [-1, 1], what is asked of each, and the same as the conditioner says it."""

    images: Float[Tensor, "batch 3 height width"]
    condition_sets: list[tuple]
    cond: Float[Tensor, "batch features"]


@dataclass(frozen=True)
class Stream:
    """Scenes drawn by `rules` and rendered at `size`; image i is a function of (seed, i)."""

    rules: Rules
    size: int | tuple[int, int]
    conditioner: SumOfParts
    labels: str = "all"
    seed: int = 0

    def batch(self, start: int, count: int) -> Batch:
        drawn = draw(self.seed, start, count, self.rules)
        scenes = [drawn.scene(i) for i in range(count)]
        return labelled_batch(render(scenes, self.size), scenes, self, start)


def labelled_batch(
    images: UInt8[np.ndarray, "batch height width 3"],
    scenes: Sequence[Scene | Seen],
    data: "Stream | Folder",
    start: int,
) -> Batch:
    """Images with labels; what is random about the labels of image i comes from (seed, i)."""
    first = int(key(data.seed, 0, LABELS)) + start  # image i has the seed first + i, whatever the batch
    sets = [labelled(data.conditioner.of(scene), data.labels, first + row) for row, scene in enumerate(scenes)]
    pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    return Batch(pixels.float() / 127.5 - 1, sets, data.conditioner(sets, first))


@dataclass(frozen=True)
class Folder:
    """Images and scenes on disk, gone through again and again, each time in an order drawn from (seed, round).

    `path` holds `images/` (the original CLEVR: `images/SPLIT/`) and `CLEVR_scenes.json`, or else `scenes/`, whose files
    have many scenes or one each. Where pixel_coords are recorded, locations are these as fractions of the image.
    With the view `square`, images of the full frame are cut to their centre square, and scenes are left out that have
    an object's centre beyond it.
    """

    path: str | Path
    size: int | tuple[int, int]
    conditioner: SumOfParts
    labels: str = "all"
    seed: int = 0
    view: str = "full"

    @cached_property
    def items(self) -> list[tuple[Path, Scene | Seen]]:
        """The files and what each of them shows."""
        path = Path(self.path)
        official = path / "CLEVR_scenes.json"
        found = structs(official if official.exists() else path / "scenes")
        items = [shown(path, struct, where, self.view) for struct, where in found]
        inside = [(file, scene) for file, scene in items if np.all(np.abs(np.subtract(scene.places, 0.5)) <= 0.5)]
        if not inside:
            raise InputError(f"{path} has no scenes in its files: there is nothing to draw from")
        return inside

    def batch(self, start: int, count: int) -> Batch:
        chosen = [self.items[self.position(i)] for i in range(start, start + count)]
        images = np.stack([read_image(path, shape_of(self.size), self.view) for path, _ in chosen])
        return labelled_batch(images, [scene for _, scene in chosen], self, start)

    def position(self, index: int) -> int:
        turn, step = divmod(index, len(self.items))
        return shuffle(len(self.items), self.seed, turn)[step]


@lru_cache(maxsize=4)
def shuffle(count: int, seed: int, turn: int) -> list[int]:
    return shuffled(count, key(seed, turn, SHUFFLE))


def shown(path: Path, struct: dict, where: str, view: str) -> tuple[Path, Scene | Seen]:
    """A scene's image, and where on the view of it the objects are."""
    name, split = struct.get("image_filename"), struct.get("split")
    if not isinstance(name, str):
        raise InputError(f"{where}: the field `image_filename` is missing")
    file = next((f for f in (path / "images" / name, path / "images" / str(split) / name) if f.exists()), None)
    if file is None:
        raise InputError(f"{where}: there is no image {path / 'images' / name}")
    scene = to_scene(struct | {"camera_location": struct.get("camera_location", CAMERA)}, where)
    seen = pixel_coords(struct["objects"], where)
    if seen is None:
        return file, replace(scene, view=view)
    width, height = picture_size(file)
    places = np.clip(seen[:, :2] / (width, height), 0, 1)
    if view == "square":
        places[:, 0] = 0.5 + (places[:, 0] - 0.5) * width / min(width, height)
    return file, Seen(scene.objects, tuple((u, v) for u, v in places.tolist()))


def read_image(file: Path, size: tuple[int, int], view: str) -> UInt8[np.ndarray, "height width 3"]:
    image = Image.fromarray(read_picture(file))
    side = min(image.size)
    left = (image.width - side) / 2 if view == "square" else 0
    box = (left, 0, image.width - left, image.height)
    return np.asarray(image.resize(size, Image.Resampling.BOX, box))
