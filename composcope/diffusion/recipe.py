"""How a model is trained, and the learning rate that follows from it.

alpha(t) = alpha_ref min(t / t_warm, 1) / sqrt(max(t / t_ref, 1)),  t in images   (EDM2, eq. 67)"""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from composcope.errors import InputError

MOST = 1e15  # of anything that a recipe counts
EVERY = ("log_every", "checkpoint_every", "sheet_every", "average_every")


@dataclass(frozen=True)
class Recipe:
    """How long, how fast and on what noise to train. Lengths are in images, intervals in steps."""

    images: int  # to train on
    batch: int = 64  # images a step
    lr: float = 8e-3  # alpha_ref, the reference learning rate
    warmup: int = 6_400  # t_warm: over these the rate rises
    decay: int = 64_000  # t_ref: from here on the rate falls as 1 / sqrt(t)
    P_mean: float = -0.3  # mean of ln sigma
    P_std: float = 1.3  # its standard deviation
    optimizer: Literal["adam", "muon"] = "adam"  # muon: on matrices, adam on the rest
    muon_rate: float = 1.0  # rate of the matrices, in rates of the rest
    cool: int = 0  # over the last so many the rate falls to zero as well
    penalty: float = 0.0  # weight of the influence that conditions have far away (penalty.py)
    penalty_radius: float = 0.1875  # beyond this it is far, in image sides
    sigma_rels: tuple[float, ...] = (0.05, 0.10)  # widths of the averages
    sigma_rel: float = 0.10  # the one of them that is the trained model
    accumulate: int = 1  # parts in which a process works through its share of a batch
    bf16: bool = False  # bfloat16 autocast
    compile: bool = False  # torch.compile
    channels_last: bool = False  # layout of weights and activations
    log_every: int = 25  # a line of the log
    checkpoint_every: int = 100  # and at least every few minutes, see checkpoint.SECONDS
    sheet_every: int = 500  # a picture of samples
    average_every: int = 250  # averages kept for other widths afterwards
    seed: int = 0  # of the first weights, the scenes and the noise

    def __post_init__(self) -> None:
        for name in ("images", "batch", "decay", "accumulate", "lr", "muon_rate", "P_std", *EVERY):
            value = getattr(self, name)
            if not 0 < value < MOST:
                wanted = f"a training needs one above 0 and below {MOST:g}"
                raise InputError(f"{name} = {value}: {wanted}")
        for name in ("warmup", "cool", "seed"):
            value = getattr(self, name)
            if not 0 <= value < 2**63:
                raise InputError(f"{name} = {value}: it is a number from 0 to 2^63 - 1")
        if not -100 < self.P_mean < 100:
            raise InputError(f"P_mean = {self.P_mean}: ln sigma is between -100 and 100")
        if not 0 <= self.penalty < MOST or not 0 < self.penalty_radius <= 1:
            raise InputError(
                f"penalty = {self.penalty}, penalty_radius = {self.penalty_radius}: a weight of 0 "
                "or more, and a radius above 0 and at most 1"
            )
        inside = all(0.001 <= s <= 0.28 for s in self.sigma_rels)
        if self.sigma_rel not in self.sigma_rels or not inside:
            raise InputError(
                f"sigma_rels = {self.sigma_rels}: widths of averages from 0.001 to 0.28, "
                f"{self.sigma_rel} among them"
            )

    @property
    def steps(self) -> int:
        return -(-self.images // self.batch)


def learning_rate(recipe: Recipe, t: int) -> float:
    rate = recipe.lr * min(t / max(recipe.warmup, 1), 1) / math.sqrt(max(t / recipe.decay, 1))
    left = recipe.steps * recipe.batch - t
    return rate * min(left / recipe.cool, 1) if recipe.cool else rate


def layout(recipe: Recipe) -> torch.memory_format:
    return torch.channels_last if recipe.channels_last else torch.contiguous_format
