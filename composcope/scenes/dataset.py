"""Images and what is asked of them, without end: (seed, index) -> image in [-1, 1], condition set.

Stream draws and renders scenes as they are needed; Folder reads images from disk. Both answer
`batch(start, count)`, a pure function, so that training stops and goes on at any index."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from composcope.chance import LABELS, SHUFFLE, key, shuffled
from composcope.errors import InputError
from composcope.progress import console
from composcope.scenes import sources
from composcope.scenes.labels import apply_policy
from composcope.scenes.parts import SumOfParts
from composcope.scenes.render import Size, frame_size, render
from composcope.scenes.rules import Rules, draw
from composcope.scenes.sources import Item, read_item, resized


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
    size: Size
    conditioner: SumOfParts
    labels: str = "all"
    seed: int = 0

    def batch(self, start: int, count: int) -> Batch:
        scenes = draw(self.seed, start, count, self.rules)
        sets = [self.conditioner.of(scene) for scene in scenes]
        return labelled_batch(render(scenes, self.size), sets, self, start)


def labelled_batch(
    images: UInt8[np.ndarray, "batch height width 3"],
    condition_sets: Sequence[tuple],
    data: "Stream | Folder",
    start: int,
) -> Batch:
    """Images with labels; what is random about the labels of image i comes from (seed, i)."""
    first = int(key(data.seed, 0, LABELS)) + start  # image i has the seed first + i in any batch
    sets = [apply_policy(one, data.labels, first + row) for row, one in enumerate(condition_sets)]
    pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    return Batch(pixels.float() / 127.5 - 1, sets, data.conditioner(sets, first))


@dataclass(frozen=True)
class Folder:
    """Images on disk, gone through again and again, each time in an order drawn from (seed, round).

    The layouts that `path` may have are those of sources.py. With the view `square`, images are cut
    to their centre square, and those are left out that have a place beyond it."""

    path: str | Path
    size: Size
    conditioner: SumOfParts
    labels: str = "all"
    seed: int = 0
    view: str = "full"
    field: str | None = None  # of metadata, if there are several

    @cached_property
    def items(self) -> list[tuple[Item, tuple]]:
        """The pictures, and what can be asked of each."""
        asked = [(item, self.conditions(item)) for item in sources.items(self.path, self.view)]
        visible = [(item, conditions) for item, conditions in asked if self.shows(item, conditions)]
        if not visible:
            raise InputError(
                f"{self.path} has no pictures to draw from, or shows none of its places"
            )
        if left_out := len(asked) - len(visible):
            beyond = f"of {len(asked)} pictures have a place beyond the {self.view} view"
            console().print(f"{left_out} {beyond}: they are left out")
        return visible

    @property
    def objects(self) -> tuple[int, int]:
        """The fewest and the most that a picture shows; of metadata, that it names."""
        numbers = [
            len(conditions if isinstance(item.shows, dict) else item.shows.objects)
            for item, conditions in self.items
        ]
        return min(numbers), max(numbers)

    def conditions(self, item: Item) -> tuple:
        """Of a scene, or as someone wrote them; places are fractions of the view."""
        if not isinstance(item.shows, dict):
            return self.conditioner.of(item.shows)
        values = sources.conditions(item.shows, self.field, item.where)
        conditions = self.conditioner.written(values, item.where)
        if not self.conditioner.has_places or self.view == "full":
            return conditions
        size = sources.size_of(item.picture, item.where)
        return tuple(sources.seen_in(self.view, place, size) for place in conditions)

    def shows(self, item: Item, conditions: tuple) -> bool:
        """Whether all places are inside the view."""
        places: Sequence = conditions if self.conditioner.has_places else ()
        if not isinstance(item.shows, dict):
            places = item.shows.places
        return all(0 <= part <= 1 for place in places for part in place)

    def batch(self, start: int, count: int) -> Batch:
        chosen = [self.items[self.position(i)] for i in range(start, start + count)]
        size = frame_size(self.size)
        images = np.stack([resized(read_item(item), size, self.view) for item, _ in chosen])
        return labelled_batch(images, [conditions for _, conditions in chosen], self, start)

    def position(self, index: int) -> int:
        turn, step = divmod(index, len(self.items))
        return shuffle(len(self.items), self.seed, turn)[step]


@lru_cache(maxsize=4)
def shuffle(count: int, seed: int, turn: int) -> list[int]:
    return shuffled(count, key(seed, turn, SHUFFLE))
