"""What is asked of an image, as a vector: conditioners turn condition sets into `cond`, a sum of one part a condition.

cond(C) = sum_k part(c_k),   cond(C_{-k}) = cond(C) - part(c_k)                              (the paper's equation 10)

So leaving a condition out is a subtraction, and any subset can be made again from `cond` itself (`split`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.errors import InputError
from composcope.scenes.chance import LABELS as LABELS_USE
from composcope.scenes.chance import SLOTS, below, key, shuffled
from composcope.scenes.scene import COLORS, Scene, Seen

# The paper's twelve test locations, (u, v) in order of use: K conditions are the first K (appendix E.2, version 1).
PAPER_LOCATIONS = (
    *((0.65, 0.65), (0.65, 0.25), (0.25, 0.65), (0.35, 0.35), (0.45, 0.65), (0.45, 0.25)),
    *((0.65, 0.45), (0.25, 0.45), (0.45, 0.45), (0.55, 0.55), (0.35, 0.55), (0.55, 0.35)),
)
# Which objects of a training image are labelled. In the words of the paper's table 2: "All labels", "Single label",
# "Rand num labels", "Drop one label".
LABELS = ("all", "one", "random", "all_but_one")


def labelled(conditions: Sequence, labels: str, seed: int) -> tuple:
    """The conditions a label policy keeps, in their order, chosen by `seed` alone.

    "random" keeps 1 to n of n: the paper does not give the range, but calls K = 0 out of distribution (table 2).
    """
    if labels not in LABELS:
        raise InputError(f"there is no label policy {labels!r}; the policies are {', '.join(LABELS)}")
    n, choice = len(conditions), key(seed, 0, LABELS_USE)
    if labels == "all" or n == 0:
        return tuple(conditions)
    keep = {"one": 1, "random": 1 + below(n, choice, n), "all_but_one": n - 1}[labels]
    return tuple(conditions[k] for k in sorted(shuffled(n, choice)[:keep]))


class SumOfParts(ABC):
    """A conditioner, given the part of each condition. Row i of a batch draws what is random about it from seed + i."""

    @property
    @abstractmethod
    def features(self) -> int: ...

    @abstractmethod
    def parts(self, condition_set: Sequence, seed: int) -> Float[np.ndarray, "conditions features"]: ...

    def of(self, scene: Scene | Seen) -> tuple:
        """The condition set of all objects of a scene: their locations, where the conditioner asks for nothing else."""
        return scene.places

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]:
        """The parts that `cond` is the sum of, one a condition; counts are sums of one-hot rows."""
        return torch.eye(len(cond), dtype=cond.dtype, device=cond.device).repeat_interleave(cond.long(), 0)

    @abstractmethod
    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        """The (u, v) each part speaks of."""

    def __call__(self, condition_sets: Sequence[Sequence], seed: int = 0) -> Float[Tensor, "batch features"]:
        cond = np.zeros((len(condition_sets), self.features), np.float32)
        for row, conditions in enumerate(condition_sets):
            cond[row] = self.parts(conditions, seed + row).sum(0)
        return torch.from_numpy(cond)

    def left_out(self, condition_set: Sequence, seed: int = 0) -> Float[Tensor, "choices features"]:
        """Row 0: the whole set; row k + 1: the set without its k-th condition, all others as they were."""
        parts = self.parts(condition_set, seed)
        return torch.from_numpy(np.concatenate([parts.sum(0)[None], parts.sum(0) - parts]))


@dataclass(frozen=True)
class LocationGrid(SumOfParts):
    """Counts of object centres in the cells of a grid over the image, row by row (section E.1); 16 in the paper."""

    grid_size: int = 16

    @property
    def features(self) -> int:
        return self.grid_size**2

    def parts(self, condition_set: Sequence, seed: int) -> Float[np.ndarray, "conditions features"]:
        u, v = checked(condition_set).T
        cell = np.minimum([v * self.grid_size, u * self.grid_size], self.grid_size - 1).astype(int)
        return one_hot(cell[0] * self.grid_size + cell[1], self.features)

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        """The centre of each part's cell."""
        cell = parts.argmax(1)
        return (torch.stack([cell % self.grid_size, cell // self.grid_size], 1) + 0.5) / self.grid_size


@dataclass(frozen=True)
class LocationList(SumOfParts):
    """Slots of (present, u, v), the empty ones zero (version 3, experiment 3).

    The paper does not say which slots it fills: `scattered` puts each location in a random slot, so that training sees
    them all, `packed` fills them from the first on.
    """

    slots: int = len(PAPER_LOCATIONS)
    order: Literal["scattered", "packed"] = "scattered"

    @property
    def features(self) -> int:
        return 3 * self.slots

    def parts(self, condition_set: Sequence, seed: int) -> Float[np.ndarray, "conditions features"]:
        where = checked(condition_set)
        if len(where) > self.slots:
            raise InputError(f"{len(where)} locations do not fit in a list of {self.slots} slots")
        slot = shuffled(self.slots, key(seed, 0, SLOTS)) if self.order == "scattered" else list(range(self.slots))
        parts = np.zeros((len(where), self.slots, 3), np.float32)
        parts[range(len(where)), slot[: len(where)]] = np.insert(where, 0, 1, axis=1)
        return parts.reshape(-1, self.features)

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]:
        slots = torch.eye(self.slots, dtype=cond.dtype, device=cond.device)
        return slots[cond[::3] > 0].repeat_interleave(3, 1) * cond

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        return parts.reshape(-1, self.slots, 3).sum(1)[:, 1:]


@dataclass(frozen=True)
class ColorCounts(SumOfParts):
    """How many objects there are of each of the eight colours (section E.1)."""

    @property
    def features(self) -> int:
        return len(COLORS)

    def parts(self, condition_set: Sequence, seed: int) -> Float[np.ndarray, "conditions features"]:
        unknown = [color for color in condition_set if color not in COLORS]
        if unknown:
            raise InputError(f"there is no colour {unknown[0]!r}; the colours are {', '.join(COLORS)}")
        return one_hot(np.array([list(COLORS).index(color) for color in condition_set], int), self.features)

    def of(self, scene: Scene | Seen) -> tuple:
        return tuple(o.color for o in scene.objects)

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        raise InputError("a colour condition has no place in the image")


def checked(locations: Sequence) -> Float[np.ndarray, "conditions 2"]:
    """Locations as an array, all of them inside the image."""
    for location in locations:
        if np.shape(location) != (2,) or not (0 <= location[0] <= 1 and 0 <= location[1] <= 1):
            raise InputError(f"the location {location} is not a (u, v) in [0, 1]^2")
    return np.array(locations, np.float64).reshape(-1, 2)


def one_hot(index: np.ndarray, features: int) -> Float[np.ndarray, "conditions features"]:
    return (index[:, None] == np.arange(features)).astype(np.float32)
