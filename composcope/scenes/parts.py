"""What is asked of an image, as a vector: `cond` is a sum of one part a condition.

cond(C) = sum_k part(c_k),   cond(C_{-k}) = cond(C) - part(c_k)    (the paper's equation 10)

So leaving a condition out is a subtraction, and `split` makes any subset again from `cond`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.errors import InputError, told_at
from composcope.scenes.rules import Rules
from composcope.scenes.scene import Scene, Seen

UNSEEN = 10**9  # beyond the seeds of trainings: what an evaluation chooses was not trained on
Parts = Float[np.ndarray, "conditions features"]
Split = Float[Tensor, "conditions features"]
Conds = Float[Tensor, "sets features"]


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
    of_scenes: ClassVar[bool] = True  # whether images show objects that the detector knows
    # in which conditions can be chosen, the usual one first
    ways: ClassVar[tuple[str, ...]] = ("random",)
    names: tuple[str, ...] = ()  # the words there are, where conditions are words
    grid_size: int | None = None  # cells a side, where conditions are counted in cells

    @classmethod
    def made(cls, grid_size: int) -> "SumOfParts":
        """The conditioner of a run whose grid has this many cells a side; most have no grid."""
        return cls()

    def fitted(self, waves: int) -> "SumOfParts":
        """The same for a network that knows places by so many waves; most have none."""
        return self

    @property
    def form(self) -> str:
        """How an object is labelled, such as "by colour"; "" where there is nothing to say."""
        return ""

    @property
    def entries(self) -> int:
        """Into so many equal pieces a network takes cond apart, to embed them by one map."""
        return 1

    @property
    def cut(self) -> dict[str, Any] | None:
        """How a patch-local network cuts cond, as arguments of its Patches; None: it cannot."""
        return None

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

    def practise(self, K: int, seed: int, index: int) -> tuple:
        """K different conditions for a student to learn from, none of which may come too seldom."""
        return self.choose(K, seed, index, self.ways[-1])

    @abstractmethod
    def parse(self, text: str) -> tuple:
        """Conditions from a command line."""

    @abstractmethod
    def scene(self, condition_set: Sequence, seed: int, rules: Rules) -> Scene:
        """A scene with one object a condition and nothing else; `rules` say all but the number."""

    def condition(self, value: Any, where: str) -> Any:
        """A condition from what someone wrote in a file of metadata, at `where`."""
        return value

    def written(self, values: Sequence, where: str) -> tuple:
        """The condition set that someone wrote in a file; InputError says `where` it is wrong."""
        conditions = tuple(self.condition(value, where) for value in values)
        with told_at(where):
            self.parts(conditions, 0)
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

    def split(self, cond: Float[Tensor, " features"]) -> Split:
        """The parts that `cond` is the sum of, one a condition; counts are sums of one-hot rows."""
        return torch.eye(len(cond)).to(cond).repeat_interleave(cond.long(), 0)

    def places(self, parts: Split) -> Float[Tensor, "conditions 2"]:
        """The (u, v) each part speaks of."""
        raise InputError(f"a {self.noun} condition has no place in the image")

    def likeness(self, count: int) -> Float[np.ndarray, "features vectors"] | None:
        """A vector for each feature of cond, alike where features mean alike things, or None."""
        return None

    def __call__(self, condition_sets: Sequence[Sequence], seed: int = 0) -> Conds:
        cond = np.zeros((len(condition_sets), self.features), np.float32)
        for row, conditions in enumerate(condition_sets):
            if isinstance(conditions, str | float | int):
                raise InputError(
                    f"a condition set is a list of {self.noun}s, not {conditions!r}; a conditioner "
                    "takes a list of sets"
                )
            cond[row] = self.parts(conditions, seed + row).sum(0)
        return torch.from_numpy(cond)

    def left_out(self, condition_set: Sequence, seed: int = 0) -> Conds:
        """Row 0: the whole set; row k + 1: without its k-th condition, the others as they were."""
        parts = self.parts(condition_set, seed)
        return torch.from_numpy(np.concatenate([parts.sum(0)[None], parts.sum(0) - parts]))


def one_hot(index: np.ndarray, features: int) -> Parts:
    return (index[:, None] == np.arange(features)).astype(np.float32)
