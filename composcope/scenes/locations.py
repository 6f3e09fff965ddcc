"""Conditions that are places: counted in the cells of a grid, or told in the slots of a list."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.chance import SLOTS, key, shuffled
from composcope.errors import InputError
from composcope.scenes.parts import UNSEEN, Parts, Split, SumOfParts, Thing, one_hot
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import Scene

# The paper's twelve test locations, (u, v) in order of use: K conditions are the first K (appendix
# E.2, version 1).
PAPER_LOCATIONS = (
    *((0.65, 0.65), (0.65, 0.25), (0.25, 0.65), (0.35, 0.35), (0.45, 0.65), (0.45, 0.25)),
    *((0.65, 0.45), (0.25, 0.45), (0.45, 0.45), (0.55, 0.55), (0.35, 0.55), (0.55, 0.35)),
)


WIDE = 4.0  # half the side of the ground on which a student practises; scenes have 3


def places_of(K: int, seed: int, index: int, spread: float) -> tuple:
    """The places of a random scene of K objects: small ones, since twelve of mixed sizes hardly
    ever fit."""
    small = Rules(objects=(K, K), sizes=("small",), view="square", spread=spread)
    return sample(UNSEEN + seed, index, small).places


class Locations(SumOfParts):
    """Conditions that are places (u, v) of objects' centres, fractions of the view."""

    noun = "location"
    like = "0.65,0.65 0.35,0.35"
    has_places = True
    ways = ("paper", "random")

    @property
    def most(self) -> int:
        return len(PAPER_LOCATIONS)

    def read(self, thing: Thing, place: tuple[float, float]) -> tuple[float, float]:
        return place

    def condition(self, value: Any, where: str) -> tuple:
        if not isinstance(value, list) or not all(type(part) in (int, float) for part in value):
            advice = "; of words: --conditioner vocabulary" if isinstance(value, str) else ""
            raise InputError(
                f"{where}: the location {value!r} is not [u, v], within 0 to 1{advice}"
            )
        return tuple(float(part) for part in value)

    def choose(self, K: int, seed: int, index: int, way: str) -> tuple:
        """The paper's first K places, or those of a random scene of K small objects."""
        if way == "paper":
            return PAPER_LOCATIONS[:K]
        return places_of(K, seed, index, Rules.spread)

    def practise(self, K: int, seed: int, index: int) -> tuple:
        """On wider ground, so that places at the border of training scenes come as often as others.
        Of random places one in a thousand is as near to the horizon as two of the paper's."""
        return places_of(K, seed, index, WIDE)

    def parse(self, text: str) -> tuple:
        try:
            places = tuple(tuple(map(float, place.split(","))) for place in text.split())
            checked(places)
        except ValueError:
            like = f'"u,v u,v ..." within 0 to 1, such as "{self.like}"'
            raise InputError(f"{text!r} is not {like}") from None
        return places

    def scene(self, condition_set: Sequence, seed: int, rules: Rules) -> Scene:
        as_many = replace(rules, objects=(len(condition_set),) * 2)
        return sample(seed, 0, as_many, places=condition_set)


@dataclass(frozen=True)
class LocationGrid(Locations):
    """Counts of object centres in the cells of a grid over the image, row by row (section E.1)."""

    grid_size: int = 16  # the paper's

    def __post_init__(self) -> None:
        if not 1 <= self.grid_size <= 256:
            raise InputError(f"a location grid has 1 to 256 cells a side, not {self.grid_size}")

    @classmethod
    def made(cls, grid_size: int) -> "LocationGrid":
        return cls(grid_size)

    @property
    def cut(self) -> dict[str, Any]:
        return {}  # as Patches does if nothing is said: to the cells of the patch

    @property
    def features(self) -> int:
        return self.grid_size**2

    def parts(self, condition_set: Sequence, seed: int) -> Parts:
        u, v = checked(condition_set).T
        cell = np.minimum([v * self.grid_size, u * self.grid_size], self.grid_size - 1).astype(int)
        return one_hot(cell[0] * self.grid_size + cell[1], self.features)

    def likeness(self, count: int) -> Float[np.ndarray, "features vectors"]:
        """The waves of each cell's centre: neighbouring cells have nearly the same."""
        return waves(self.places(torch.eye(self.features)).double().numpy(), count)

    def places(self, parts: Split) -> Float[Tensor, "conditions 2"]:
        """The centre of each part's cell."""
        cell = parts.argmax(1)
        column_row = torch.stack([cell % self.grid_size, cell // self.grid_size], 1)
        return (column_row + 0.5) / self.grid_size


def waves(where: Float[np.ndarray, "places 2"], count: int) -> Float[np.ndarray, "places features"]:
    """cos(pi f u) cos(pi g v), f, g = 0 .. count - 1, of unit norm; f = g = 0 says: a place.

    Products, because a sum of waves forgets, of two places, which u belongs to which v."""
    u, v = np.cos(np.pi * where[:, :, None] * np.arange(count)).transpose(1, 0, 2)
    products = (u[:, :, None] * v[:, None, :]).reshape(len(where), count**2)
    return products / np.linalg.norm(products, axis=1, keepdims=True)


@dataclass(frozen=True)
class LocationList(Locations):
    """Slots that hold the waves of a place each, the empty ones zero (version 3, experiment 3).

    The paper does not say which slots it fills: `scattered` puts each location in a random slot, so
    that training sees them all, `packed` fills them from the first on. A network may have a map of
    its own for each slot, or one that all slots share (`shared`): what was a list is then a set."""

    slots: int = len(PAPER_LOCATIONS)
    order: Literal["scattered", "packed"] = "scattered"
    shared: bool = False
    count: int = 8  # of waves along each side

    def fitted(self, waves: int) -> "LocationList":
        return replace(self, count=waves) if waves else self

    @property
    def form(self) -> str:
        return "in a set" if self.shared else "in a list of slots"

    @property
    def entries(self) -> int:
        return self.slots if self.shared else 1

    @property
    def cut(self) -> dict[str, Any]:
        return {"slots": self.slots, "slot_features": self.count**2, "place": self.place}

    @property
    def features(self) -> int:
        return self.slots * self.count**2

    def parts(self, condition_set: Sequence, seed: int) -> Parts:
        where = checked(condition_set)
        if len(where) > self.slots:
            raise InputError(f"{len(where)} locations do not fit in a list of {self.slots} slots")
        slot = list(range(self.slots))
        if self.order == "scattered":
            slot = shuffled(self.slots, key(seed, 0, SLOTS))
        parts = np.zeros((len(where), self.slots, self.count**2), np.float32)
        parts[range(len(where)), slot[: len(where)]] = waves(where, self.count)
        return parts.reshape(-1, self.features)

    def split(self, cond: Float[Tensor, " features"]) -> Split:
        full = cond.view(self.slots, -1)[:, 0] > 0
        slots = torch.eye(self.slots).to(cond)
        return slots[full].repeat_interleave(self.count**2, 1) * cond

    def places(self, parts: Split) -> Float[Tensor, "conditions 2"]:
        return self.place(parts.unflatten(1, (self.slots, -1)).sum(1))

    def place(self, entry: Float[Tensor, "*batch waves"]) -> Float[Tensor, "*batch 2"]:
        """The (u, v) whose waves an entry holds, from the slowest; (0.5, 0.5) of an empty slot."""
        present = entry[..., 0].clamp(min=1e-12)
        slow = torch.stack([entry[..., self.count], entry[..., 1]], -1) / present[..., None]
        return slow.clamp(-1, 1).arccos() / math.pi


def checked(locations: Sequence) -> Float[np.ndarray, "conditions 2"]:
    """Locations as an array, all of them inside the image."""
    for location in locations:
        pair = np.shape(location) == (2,) and not any(isinstance(part, str) for part in location)
        if not pair or not all(0 <= part <= 1 for part in location):
            raise InputError(f"the location {location} is not a (u, v) in [0, 1]^2")
    return np.array(locations, np.float64).reshape(-1, 2)
