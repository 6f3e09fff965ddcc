"""The contract in the middle of the project, and what measurements need of a conditioner.

denoiser(x, sigma, cond) -> x0            score: (denoiser(x, sigma, cond) - x) / sigma^2        (EDM, equation 3)
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from jaxtyping import Float
from torch import Tensor

Condition: TypeAlias = Any  # one thing asked for: a location (u, v), a colour name, a word
ConditionSet: TypeAlias = Sequence[Condition]  # what is asked of one image


class Denoiser(Protocol):
    """Anything that takes the noise off: a trained network, an exact mixture, a wrapper around either, SDXL."""

    def __call__(
        self,
        x: Float[Tensor, "batch channel height width"],
        sigma: Float[Tensor, " batch"],
        cond: Float[Tensor, "batch features"] | None,
    ) -> Float[Tensor, "batch channel height width"]: ...


class Conditioner(Protocol):
    """Turns condition sets into `cond`. What is random about it (the slot of a list entry) comes from `seed` alone."""

    features: int

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Float[Tensor, "batch features"]: ...

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Float[Tensor, "choices features"]:
        """Row 0: the whole set; row k + 1: the set without its k-th condition, all others as they were."""
        ...


class SplitConditioner(Conditioner, Protocol):
    """A conditioner whose cond is a sum of parts, one a condition, so that any subset can be made from cond itself."""

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]: ...

    def places(self, parts: Float[Tensor, "conditions features"]) -> Float[Tensor, "conditions 2"]:
        """The place (u, v) in [0, 1]^2 each part speaks of; InputError for conditioners without places (colours)."""
        ...
