"""The conditioners there are, by name: places, words that are counted, and those from outside."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from composcope.chance import LABELS, key, shuffled
from composcope.errors import InputError, check_name
from composcope.imports import module_at
from composcope.scenes.locations import PAPER_LOCATIONS, LocationGrid, LocationList, Locations
from composcope.scenes.parts import UNSEEN, Parts, SumOfParts, Thing, one_hot
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, SHAPES, Object, Scene

__all__ = ["CONDITIONERS", "PAPER_LOCATIONS", "ColorCounts", "LocationGrid", "LocationList"]
__all__ += ["Locations", "Names", "ShapeCounts", "SumOfParts", "Vocabulary", "conditioner_named"]
__all__ += ["add_outside", "word"]


class Names(SumOfParts):
    """Conditions that are words from a list, counted: so many objects of each."""

    @property
    def form(self) -> str:
        return f"by {self.noun}"

    @property
    def features(self) -> int:
        return len(self.names)

    @property
    def most(self) -> int:
        return len(self.names)

    def parts(self, condition_set: Sequence, seed: int) -> Parts:
        for name in condition_set:
            check_name(self.noun, name, self.names)
        index = np.array([self.names.index(name) for name in condition_set], int)
        return one_hot(index, self.features)

    def condition(self, value: Any, where: str) -> str:
        return word(value, where)

    def choose(self, K: int, seed: int, index: int, way: str) -> tuple:
        order = shuffled(len(self.names), key(UNSEEN + seed, index, LABELS))
        return tuple(self.names[k] for k in order[:K])

    def parse(self, text: str) -> tuple:
        """Names with commas between them, or with spaces if no name has a space or a comma."""
        single = not any(" " in name or "," in name for name in self.names)
        words = joined(listed(",".join(text.split()) if single else text), self.names)
        self.parts(words, 0)
        return words

    def scene(self, condition_set: Sequence, seed: int, rules: Rules) -> Scene:
        scene = sample(seed, 0, replace(rules, objects=(len(condition_set),) * 2))
        return replace(scene, objects=tuple(map(self.dress, scene.objects, condition_set)))

    @abstractmethod
    def dress(self, thing: Object, name: str) -> Object:
        """The object, made to meet a condition."""


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def joined(parts: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """The words that were meant: a name may have commas itself; the longest that fits counts."""
    known = {listed(name): name for name in names}
    longest = max(map(len, known))
    words: list[str] = []
    while parts:
        n = next((n for n in range(longest, 0, -1) if parts[:n] in known), 1)
        words.append(known.get(parts[:n], parts[0]))
        parts = parts[n:]
    return tuple(words)


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
    of_scenes = False
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or len({*self.names}) < len(self.names):
            raise InputError(
                "a vocabulary is a list of different words; they are taken from the metadata of "
                "the images that a run is trained on (--data)"
            )

    @property
    def like(self) -> str:  # type: ignore[override]
        return ", ".join(self.names[:2])

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


VOCABULARY = "vocabulary"  # made of words that the metadata of images have
FROM_OUTSIDE = "FILE.py:Class or package.module:Class"


def add_outside(name: str) -> None:
    """Add a conditioner from outside to CONDITIONERS under its name: "FILE.py:Class", or
    "package.module:Class".

    It is imported because a user has named it: never call this with what a file says."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise InputError(f"there is no conditioner {name!r}: give {FROM_OUTSIDE}")
    try:
        found = getattr(module_at(place), attribute)
    except InputError:
        raise
    except Exception as error:  # a module of a user's may raise any
        reason = f"which is read as {FROM_OUTSIDE} ({type(error).__name__}: {error})"
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
    if name == VOCABULARY:
        return Vocabulary(words)
    if name not in CONDITIONERS and ":" in name:
        raise InputError(
            f"the conditioner {name} comes from outside and is imported only when you name it: "
            "load(..., conditioner=...) or --conditioner"
        )
    check_name("conditioner", name, [*CONDITIONERS, VOCABULARY, "none", FROM_OUTSIDE])
    return CONDITIONERS[name](grid_size)


def word(value: Any, where: str) -> str:
    """A word of a file of metadata; classes that are numbers are words too."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise InputError(f"{where}: {value!r} is not a word")
    return str(value).strip()
