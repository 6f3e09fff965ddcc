"""Conditioners of foreign models: a class, or phrases of a prompt."""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Condition, ConditionSet, Conds
from composcope.errors import InputError

Encode = Callable[[Sequence[str]], Float[Tensor, "prompts features"]]


@dataclass(frozen=True)
class Classes:
    """The conditioner of a class-conditional model: one class an image, cond its one-hot vector.

    A class is a number below `count`, or a name from `names`. Nothing asked, (), is the class
    `null`, with which the model was trained in place of labels that were left out; without one a
    class cannot be left out, and its influence is not defined.

        classes = Classes(10, null=10)
        cond = classes([(3,), (7,), ()])              # [3, 11]; the model takes cond.argmax(1)"""

    noun: ClassVar[str] = "class"
    has_places: ClassVar[bool] = False
    count: int
    null: int | None = None
    names: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, number, least in (("count", self.count, 1), ("null", self.null or 0, 0)):
            if not isinstance(number, int) or number < least:
                raise InputError(
                    f"Classes: {name} is a whole number from {least} on, not {number!r}"
                )
        if not isinstance(self.names, Mapping):
            raise InputError("Classes: names say which class each is, such as {'cat': 0, 'dog': 1}")

    @property
    def features(self) -> int:
        return max(self.count, 0 if self.null is None else self.null + 1)

    def label(self, condition: Condition) -> int:
        """The number of a class."""
        given: Any = self.names.get(condition) if isinstance(condition, str) else condition
        number = -1
        with suppress(TypeError):  # whole numbers of numpy and torch are numbers too
            number = -1 if isinstance(given, bool) else operator.index(given)
        if not 0 <= number < self.count:
            known = f"from 0 to {self.count - 1}"
            if self.names:
                known = f"{known}, or names such as {next(iter(self.names))!r}"
            raise InputError(f"there is no class {condition!r}; the classes are {known}")
        return number

    def of_set(self, condition_set: ConditionSet) -> int:
        if isinstance(condition_set, str) or not isinstance(condition_set, Sequence):
            raise InputError(f"a condition set is a list of one class: ({condition_set!r},)")
        if len(condition_set) > 1:
            raise InputError(f"a class-conditional model takes one class, not {condition_set!r}")
        if condition_set:
            return self.label(condition_set[0])
        if self.null is None:
            raise InputError(
                "the model has no class that means nothing asked; if it was trained with one, name "
                "it (null=, in from_diffusers null_class=): without it a class cannot be left out"
            )
        return self.null

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Conds:
        labels = [self.of_set(condition_set) for condition_set in condition_sets]
        return torch.eye(self.features)[labels]

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Conds:
        """Row 0: the class; row 1, if there is a class to leave out: none."""
        return self([condition_set, *[()] * len(condition_set)])


@dataclass(frozen=True)
class Phrases:
    """The conditioner of a text-conditional model: conditions are phrases, joined to a prompt.

        phrases = Phrases(encode)
        cond = phrases([("a red cube on the left", "a blue sphere")])      # joined by " and "

    To leave out the single words of a prompt, take features.words.Words(prompt, phrases.encode)."""

    noun: ClassVar[str] = "phrase"
    has_places: ClassVar[bool] = False
    encode: Encode
    joint: str = " and "

    def __post_init__(self) -> None:
        if not callable(self.encode):
            kind = type(self.encode).__name__
            raise InputError(f"Phrases: encode is a function from prompts to cond, not {kind}")

    @property
    def features(self) -> int:
        return self.encode([""]).shape[1]

    def prompt(self, condition_set: ConditionSet) -> str:
        if isinstance(condition_set, str):
            raise InputError(
                f"a condition set is a list of phrases, ({condition_set!r},); a prompt alone is not"
            )
        wrong = [phrase for phrase in condition_set if not isinstance(phrase, str)]
        if wrong:
            raise InputError(f"a condition is a phrase, such as 'a red cube', not {wrong[0]!r}")
        return self.joint.join(condition_set)

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Conds:
        return self.encode([self.prompt(condition_set) for condition_set in condition_sets])

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Conds:
        """Row 0: all phrases; row k + 1: all but the k-th."""
        phrases = list(condition_set)
        fewer = [phrases[:k] + phrases[k + 1 :] for k in range(len(phrases))]
        return self([condition_set, *fewer])
