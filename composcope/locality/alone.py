"""Conditions whose `cond` is no sum of parts (classes, phrases), each kept apart for its pixels.

    cond(C) = [K | c({}) | c({c_1}) | ... | c({c_K}) | zeros]         c: the conditioner's own cond

So no more is asked of a conditioner than of `audit`, and a model of one class an image can be asked
for several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import ConditionSet, Conds
from composcope.errors import InputError

MOST = 12  # conditions of one image: rows of cond are alike in length, however many are asked


@dataclass(frozen=True)
class EachAlone:
    """A conditioner around another: it keeps the cond of nothing, and of each condition alone."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        """What it does not change (noun, has_places, places) is the inner one's."""
        if name == "inner":  # not there yet, while it is copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def features(self) -> int:
        return 1 + (1 + MOST) * self.inner.features

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Conds:
        made = [self.packed(some, seed + i) for i, some in enumerate(condition_sets)]
        return torch.stack(made)

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Conds:
        """Row 0: the whole set; row k + 1: without its k-th condition."""
        some = list(condition_set)
        fewer = [some[:k] + some[k + 1 :] for k in range(len(some))]
        return torch.stack([self.packed(one, seed) for one in (condition_set, *fewer)])

    def packed(self, condition_set: ConditionSet, seed: int) -> Float[Tensor, " features"]:
        if isinstance(condition_set, str) or len(condition_set) > MOST:
            raise InputError(
                f"a condition set is a list of at most {MOST} conditions, not {condition_set!r}"
            )
        rows = self.choices(condition_set, seed)
        padding = rows.new_zeros((MOST - len(condition_set)) * rows.shape[1])
        return torch.cat([rows.new_tensor([len(condition_set)]), rows.flatten(), padding])

    def choices(self, condition_set: ConditionSet, seed: int) -> Conds:
        alone = [(), *((condition,) for condition in condition_set)]
        return torch.cat([self.inner([some], seed) for some in alone])

    def rows(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "choices inner"]:
        """The inner conds that were kept."""
        count = int(cond[0])
        width, rest = divmod(len(cond) - 1, 1 + MOST)
        if rest or count != cond[0] or not 0 <= count <= MOST:
            raise InputError(
                f"LocalConditions: this cond of {len(cond)} features was not made by the "
                "conditioner of the wrapped denoiser; take wrapped.conditioner(condition_sets)"
            )
        return cond[1:].view(1 + MOST, width)[: 1 + count]


@dataclass(frozen=True)
class EachLeftOut(EachAlone):
    """The same with the cond of the whole set, and of all but each, as `left_out` gives them."""

    def choices(self, condition_set: ConditionSet, seed: int) -> Conds:
        return self.inner.left_out(condition_set, seed)
