"""What is asked of an image, as a vector: conditioners turn condition sets into `cond`, a sum of
one part a condition.

cond(C) = sum_k part(c_k),   cond(C_{-k}) = cond(C) - part(c_k)    (the paper's equation 10)

So leaving a condition out is a subtraction, and any subset can be made again from `cond` itself
(`split`)."""

import importlib
import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.chance import LABELS, SLOTS, key, shuffled
from composcope.errors import InputError
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, SHAPES, Object, Scene, Seen

# The paper's twelve test locations, (u, v) in order of use: K conditions are the first K (appendix
# E.2, version 1).
PAPER_LOCATIONS = (
    *((0.65, 0.65), (0.65, 0.25), (0.25, 0.65), (0.35, 0.35), (0.45, 0.65), (0.45, 0.25)),
    *((0.65, 0.45), (0.25, 0.45), (0.45, 0.45), (0.55, 0.55), (0.35, 0.55), (0.55, 0.35)),
)
UNSEEN = 10**9  # beyond the seeds of trainings: what an evaluation chooses was not trained on
Parts = Float[np.ndarray, "conditions features"]


@runtime_checkable
class Thing(Protocol):
    """What a condition is read from: an object of a scene, or one that a detector found."""

    @property
    def color(self) -> str: ...

    @property
    def shape(self) -> str: ...

    @property
    def size(self) -> str: ...


class SumOfParts(ABC):
    """The base of conditioners: all that the project needs to know of a kind of condition.

    A subclass says what its conditions are called, how one is read from an object, how K different
    ones are chosen, how they are read from a command line, and which vector each of them is. Row i
    of a batch draws what is random about it from seed + i."""

    noun: ClassVar[str]  # one condition, in sentences and figures: "location"
    like: ClassVar[str]  # conditions as on a command line: "0.65,0.65 0.35,0.35"
    has_places: ClassVar[bool] = False  # whether a condition speaks of a place in the image
    countable: ClassVar[bool] = True  # whether an object of a scene is read as a condition
    # in which conditions can be chosen, the usual one first
    ways: ClassVar[tuple[str, ...]] = ("random",)

    @classmethod
    def made(cls, grid_size: int) -> "SumOfParts":
        """The conditioner of a run whose grid has this many cells a side; most have no grid."""
        return cls()

    @property
    @abstractmethod
    def features(self) -> int:
        """The length of cond."""

    @property
    @abstractmethod
    def most(self) -> int:
        """The most conditions that one image can be asked for in an evaluation."""

    @abstractmethod
    def parts(self, condition_set: Sequence, seed: int) -> Parts:
        """One vector a condition; InputError for what is not a condition of this kind."""

    @abstractmethod
    def read(self, thing: Thing, place: tuple[float, float]) -> Any:
        """The condition that an object at a place (u, v) meets."""

    @abstractmethod
    def choose(self, K: int, seed: int, index: int, way: str) -> tuple:
        """K different conditions, a function of (seed, index) and the way of choosing."""

    @abstractmethod
    def parse(self, text: str) -> tuple:
        """Conditions from a command line."""

    @abstractmethod
    def scene(self, condition_set: Sequence, seed: int, rules: Rules) -> Scene:
        """A scene that has what is asked, one object a condition, and nothing else; `rules` say all
        but the number."""

    def condition(self, value: Any, where: str) -> Any:
        """A condition from what someone wrote in a file of metadata, at `where`."""
        return value

    def written(self, values: Sequence, where: str) -> tuple:
        """The condition set that someone wrote in a file; InputError says `where` it is wrong."""
        conditions = tuple(self.condition(value, where) for value in values)
        try:
            self.parts(conditions, 0)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        return conditions

    def of(self, scene: Scene | Seen) -> tuple:
        """The condition set of all objects of a scene."""
        return tuple(map(self.read, scene.objects, scene.places))

    def ask(self, K: int, num: int, seed: int = 0, way: str | None = None) -> list[tuple]:
        """`num` condition sets of K conditions each."""
        way, nouns = way or self.ways[0], f"{self.noun}s"
        if way not in self.ways:
            ways = ", ".join(self.ways)
            raise InputError(f"{nouns} are not chosen in the way {way!r}; the ways are {ways}")
        if not 0 <= K <= self.most:
            raise InputError(f"cannot ask for {K} {nouns}; from 0 to {self.most} can be asked for")
        return [self.choose(K, seed, index, way) for index in range(num)]

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]:
        """The parts that `cond` is the sum of, one a condition; counts are sums of one-hot rows."""
        return torch.eye(len(cond)).to(cond).repeat_interleave(cond.long(), 0)

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        """The (u, v) each part speaks of."""
        raise InputError(f"a {self.noun} condition has no place in the image")

    def likeness(self, count: int) -> Float[np.ndarray, "features vectors"] | None:
        """A vector for each feature of cond, alike where features mean alike things, or None."""
        return None

    def __call__(
        self, condition_sets: Sequence[Sequence], seed: int = 0
    ) -> Float[Tensor, "batch features"]:
        cond = np.zeros((len(condition_sets), self.features), np.float32)
        for row, conditions in enumerate(condition_sets):
            if isinstance(conditions, str | float | int):
                raise InputError(
                    f"a condition set is a list of {self.noun}s, not {conditions!r}; a conditioner "
                    "takes a list of sets"
                )
            cond[row] = self.parts(conditions, seed + row).sum(0)
        return torch.from_numpy(cond)

    def left_out(self, condition_set: Sequence, seed: int = 0) -> Float[Tensor, "choices features"]:
        """Row 0: the whole set; row k + 1: the set without its k-th condition, all others as they
        were."""
        parts = self.parts(condition_set, seed)
        return torch.from_numpy(np.concatenate([parts.sum(0)[None], parts.sum(0) - parts]))


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
            raise InputError(f"{where}: the location {value!r} is not [u, v], within 0 to 1")
        return tuple(float(part) for part in value)

    def choose(self, K: int, seed: int, index: int, way: str) -> tuple:
        """The paper's first K places, or those of a random scene of K small objects."""
        if way == "paper":
            return PAPER_LOCATIONS[:K]
        # of mixed sizes, twelve hardly ever fit
        small = Rules(objects=(K, K), sizes=("small",), view="square")
        return sample(UNSEEN + seed, index, small).places

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


class Names(SumOfParts):
    """Conditions that are words from a list, counted: so many objects of each."""

    names: tuple[str, ...]

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def most(self) -> int:
        return len(self.names)

    def parts(self, condition_set: Sequence, seed: int) -> Parts:
        unknown = [name for name in condition_set if name not in self.names]
        if unknown:
            names = ", ".join(self.names)
            raise InputError(
                f"there is no {self.noun} {unknown[0]!r}; the {self.noun}s are {names}"
            )
        index = np.array([self.names.index(name) for name in condition_set], int)
        return one_hot(index, self.features)

    def condition(self, value: Any, where: str) -> str:
        return word(value, where)

    def choose(self, K: int, seed: int, index: int, way: str) -> tuple:
        order = shuffled(len(self.names), key(UNSEEN + seed, index, LABELS))
        return tuple(self.names[k] for k in order[:K])

    def parse(self, text: str) -> tuple:
        words = tuple(text.replace(",", " ").split())
        self.parts(words, 0)
        return words

    def scene(self, condition_set: Sequence, seed: int, rules: Rules) -> Scene:
        scene = sample(seed, 0, replace(rules, objects=(len(condition_set),) * 2))
        return replace(scene, objects=tuple(map(self.dress, scene.objects, condition_set)))

    @abstractmethod
    def dress(self, thing: Object, name: str) -> Object:
        """The object, made to meet a condition."""


@dataclass(frozen=True)
class LocationGrid(Locations):
    """Counts of object centres in the cells of a grid over the image, row by row (section E.1); 16
    in the paper."""

    grid_size: int = 16

    def __post_init__(self) -> None:
        if not 1 <= self.grid_size <= 256:
            raise InputError(f"a location grid has 1 to 256 cells a side, not {self.grid_size}")

    @classmethod
    def made(cls, grid_size: int) -> "LocationGrid":
        return cls(grid_size)

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

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        """The centre of each part's cell."""
        cell = parts.argmax(1)
        column_row = torch.stack([cell % self.grid_size, cell // self.grid_size], 1)
        return (column_row + 0.5) / self.grid_size


def waves(where: Float[np.ndarray, "places 2"], count: int) -> Float[np.ndarray, "places features"]:
    """cos(pi f u) cos(pi g v) for f, g = 0 .. count - 1, scaled to unit norm; f = g = 0 says that
    there is a place.

    Products, because a sum of waves of u and of v forgets, of two places, which u belongs to which
    v."""
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

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]:
        full = cond.view(self.slots, -1)[:, 0] > 0
        slots = torch.eye(self.slots).to(cond)
        return slots[full].repeat_interleave(self.count**2, 1) * cond

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        return self.place(parts.unflatten(1, (self.slots, -1)).sum(1))

    def place(self, entry: Float[Tensor, "*batch waves"]) -> Float[Tensor, "*batch 2"]:
        """The (u, v) whose waves an entry holds, from the slowest; (0.5, 0.5) of an empty slot."""
        present = entry[..., 0].clamp(min=1e-12)
        slow = torch.stack([entry[..., self.count], entry[..., 1]], -1) / present[..., None]
        return slow.clamp(-1, 1).arccos() / math.pi


@dataclass(frozen=True)
class ColorCounts(Names):
    """How many objects there are of each of the eight colours (section E.1)."""

    noun = "colour"
    like = "red blue"
    names = tuple(COLORS)

    def read(self, thing: Thing, place: tuple[float, float]) -> str:
        return thing.color

    def dress(self, thing: Object, name: str) -> Object:
        return replace(thing, color=name)


@dataclass(frozen=True)
class ShapeCounts(Names):
    """How many cubes, spheres and cylinders there are."""

    noun = "shape"
    like = "cube sphere"
    names = SHAPES

    def read(self, thing: Thing, place: tuple[float, float]) -> str:
        return thing.shape

    def dress(self, thing: Object, name: str) -> Object:
        return replace(thing, shape=name)


@dataclass(frozen=True)
class Vocabulary(Names):
    """Which words of a list belong to an image: classes, attributes, tags of one's own pictures.

    A word that an image has twice counts twice. No scene can be made from words, and no object of a
    scene is read as one: such models are drawn with and audited, not counted."""

    noun = "word"
    countable = False
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or len({*self.names}) < len(self.names):
            raise InputError(
                "a vocabulary is a list of different words; they are taken from the metadata of the "
                "images that a run is trained on (--data)"
            )

    @property
    def like(self) -> str:  # type: ignore[override]
        return ", ".join(self.names[:2])

    def parse(self, text: str) -> tuple:
        """Words with commas between them, or with spaces if none of the vocabulary has one."""
        spaces = "," in text or any(" " in name for name in self.names)
        parts = text.split(",") if spaces else text.split()
        words = tuple(part.strip() for part in parts if part.strip())
        self.parts(words, 0)
        return words

    def read(self, thing: Thing, place: tuple[float, float]) -> str:
        raise InputError("an object of a scene is not one of the words of a vocabulary")

    def dress(self, thing: Object, name: str) -> Object:
        raise InputError(f"no object can be made from the word {name!r}")


# The conditioners of the project by the names that configurations and command lines use.
CONDITIONERS: dict[str, Callable[[int], SumOfParts]] = {
    "grid": LocationGrid.made,
    "list": LocationList.made,
    "packed": lambda grid_size: LocationList(order="packed"),
    "set": lambda grid_size: LocationList(shared=True),
    "color": ColorCounts.made,
    "shape": ShapeCounts.made,
}


def outside(name: str) -> None:
    """Add a conditioner from outside, "package.module:Class", to CONDITIONERS under this name.

    It is imported because a user has named it: never call this with what a file says."""
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # where a user's own module is, as with `python -m`
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module of a user's may raise any
        reason = f"which is read as package.module:Class ({type(error).__name__}: {error})"
        raise InputError(f"there is no conditioner {name!r}, {reason}") from None
    if not (isinstance(found, type) and issubclass(found, SumOfParts)):
        base = "composcope.scenes.condition.SumOfParts"
        raise InputError(f"{name} is no conditioner: not a subclass of {base}")
    if found.__abstractmethods__:
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(f"{name} is not yet a conditioner: it has no {missing}")
    CONDITIONERS[name] = found.made


def conditioner_named(name: str, grid_size: int, words: tuple[str, ...] = ()) -> SumOfParts | None:
    """A conditioner by its name; None when nothing is asked. `words` are those of a vocabulary."""
    if name == "none":
        return None
    if name == "vocabulary":
        return Vocabulary(words)
    if name not in CONDITIONERS and ":" in name:
        raise InputError(
            f"the conditioner {name} comes from outside and is imported only when you name it: "
            "load(..., conditioner=...) or --conditioner"
        )
    if name not in CONDITIONERS:
        names = ", ".join([*CONDITIONERS, "vocabulary", "none"])
        raise InputError(f"there is no conditioner {name!r}; the conditioners are {names}")
    return CONDITIONERS[name](grid_size)


def word(value: Any, where: str) -> str:
    """A word of a file of metadata; classes that are numbers are words too."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise InputError(f"{where}: {value!r} is not a word")
    return str(value).strip()


def checked(locations: Sequence) -> Float[np.ndarray, "conditions 2"]:
    """Locations as an array, all of them inside the image."""
    for location in locations:
        pair = np.shape(location) == (2,) and not any(isinstance(part, str) for part in location)
        if not pair or not all(0 <= part <= 1 for part in location):
            raise InputError(f"the location {location} is not a (u, v) in [0, 1]^2")
    return np.array(locations, np.float64).reshape(-1, 2)


def one_hot(index: np.ndarray, features: int) -> Float[np.ndarray, "conditions features"]:
    return (index[:, None] == np.arange(features)).astype(np.float32)
