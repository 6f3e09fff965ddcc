"""The contract in the middle of the project, and what measurements need of a conditioner.

denoiser(x, sigma, cond) -> x0      score: (denoiser(x, sigma, cond) - x) / sigma^2  (EDM, eq. 3)"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from composcope.errors import InputError

# The shapes of the contract, denoiser(x, sigma, cond) -> x0.
X = Float[Tensor, "batch channel height width"]
Sigmas = Float[Tensor, " batch"]
Cond = Float[Tensor, "batch features"] | None
Condition: TypeAlias = Any  # one thing asked for: a location (u, v), a colour name, a word
ConditionSet: TypeAlias = Sequence[Condition]  # what is asked of one image
Conds = Float[Tensor, "sets features"]  # a row of cond for each of several condition sets
Pictures = UInt8[np.ndarray, "batch rows columns 3"]

STEEP = 4.0  # logits of the gate are this many times an output of unit magnitude


@runtime_checkable
class Denoiser(Protocol):
    """Anything that takes the noise off: a network, an exact mixture, a wrapper of either, SDXL."""

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X: ...


@runtime_checkable
class Conditioner(Protocol):
    """Turns condition sets into `cond`. What is random about it comes from `seed` alone.

    Two methods more, if it has them, serve interventions: `split(cond)`, where cond is a sum of
    parts, one a condition, gives these; `places(parts)` the (u, v) in [0, 1]^2 they speak of."""

    @property
    def features(self) -> int: ...

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Conds: ...

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Conds:
        """Row 0: the whole set; row k + 1: without its k-th condition, the others as they were."""
        ...


@runtime_checkable
class Drawer(Protocol):
    """A denoiser with all that drawing takes: a trained run, or a wrapper around one."""

    @property
    def conditioner(self) -> Any:
        """A Conditioner, or None where nothing is asked."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of x: channel, height, width."""
        ...

    @property
    def about(self) -> Mapping[str, Any]:
        """The coordinates of its measurements: run, snapshot, images, weights, intervention."""
        ...

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X: ...

    def decode(self, x: X) -> Pictures: ...


def takes(called: Any, count: int) -> bool:
    """Whether something can be called with so many arguments."""
    if not callable(called):
        return False
    try:
        signature = inspect.signature(getattr(called, "forward", called))
    except (TypeError, ValueError):  # of what is not written in Python nothing is known
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def check_denoiser(denoiser: Any, where: str) -> None:
    """An InputError for what cannot be called as denoiser(x, sigma, cond)."""
    theirs = type(denoiser).__module__.startswith("diffusers.")  # takes three, others than these
    if takes(denoiser, 3) and not theirs:
        return
    kind = getattr(denoiser, "__name__", type(denoiser).__name__)
    advice = "make it one: composcope.adapters.from_x0(model), from_eps, ..."
    if theirs:
        advice = "make it one: composcope.adapters.from_diffusers(net, scheduler)"
    if isinstance(denoiser, str):
        advice = f"load it first: load({denoiser!r})"
    raise InputError(f"{where}: {kind} is not called as denoiser(x, sigma, cond); {advice}")


def check_cond(cond: Any, x: X) -> None:
    """A row of cond that is too few would be taken for all images, and nobody would know."""
    if cond is None or (isinstance(cond, Tensor) and len(cond) == len(x)):
        return
    given = f"{len(cond)} rows" if isinstance(cond, Tensor) else type(cond).__name__
    raise InputError(
        f"cond is {given} for {len(x)} images; it is a tensor with a row for each, such as "
        "conditioner(condition_sets)"
    )


def plain_sets(condition_sets: Any) -> Any:
    """Arrays and tensors of conditions as the lists that they hold; all else as it is."""
    if isinstance(condition_sets, np.ndarray | Tensor):
        return condition_sets.tolist()
    if isinstance(condition_sets, list | tuple):
        arrays = np.ndarray | Tensor
        return [some.tolist() if isinstance(some, arrays) else some for some in condition_sets]
    return condition_sets


def conditions_of(given: Sequence) -> tuple:
    """A condition set from JSON, where tuples have become lists."""
    return tuple(tuple(one) if isinstance(one, list) else one for one in given)


def cond_of(conditioner: Any, condition_sets: Sequence[ConditionSet], seed: int) -> Conds:
    """What a conditioner makes of condition sets, if it keeps its contract."""
    count, name = len(condition_sets), type(conditioner).__name__
    if not takes(conditioner, 2):
        raise InputError(f"{name} is not called as conditioner(condition_sets, seed)")
    wanted = f"for {count} sets; it returns a tensor [batch, features] with a row for each"
    return checked_rows(conditioner(condition_sets, seed), count, name, wanted)


def checked_rows(made: Any, count: int, who: str, wanted: str) -> Conds:
    """What a conditioner made, if it has so many rows."""
    if isinstance(made, Tensor) and made.ndim == 2 and len(made) == count:
        return made
    found = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
    raise InputError(f"{who} returns {found} {wanted}")


class Wrapper:
    """A denoiser around another one; what it does not change is the inner one's."""

    changes: Mapping[str, Any] = {}  # coordinates that tell its measurements from the inner one's

    def __init__(self, denoiser: Denoiser):
        self.denoiser = denoiser

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        return self.denoiser(x, sigma, cond)

    @property
    def conditioner(self) -> Any:
        return getattr(self.denoiser, "conditioner", None)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.denoiser.shape  # type: ignore[attr-defined]

    @property
    def view(self) -> str:
        return getattr(self.denoiser, "view", "full")

    @property
    def about(self) -> Mapping[str, Any]:
        return {**getattr(self.denoiser, "about", {}), **self.changes}

    def decode(self, x: X) -> Pictures:
        return self.denoiser.decode(x)  # type: ignore[attr-defined]


def innermost(denoiser: Denoiser) -> Denoiser:
    """What all wrappers are around."""
    return innermost(denoiser.denoiser) if isinstance(denoiser, Wrapper) else denoiser


class Counted(Wrapper):
    """The denoiser it wraps, with a count of its evaluations: one for each image of each call."""

    def __init__(self, denoiser: Denoiser):
        super().__init__(denoiser)
        self.evaluations = 0

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        self.evaluations += len(x)
        return self.denoiser(x, sigma, cond)


class Precond(nn.Module):
    """The Denoiser of a network: D(x) = c_skip x + c_out F(c_in x, c_noise)  (EDM, eq. 7).

    The coefficients keep the network's input and training target at unit variance for data of
    standard deviation sigma_data (EDM, table 1). `uncertainty` maps c_noise to the log-variance
    u(sigma) of the loss (EDM2, eq. 22).

    With `gate` the network has gate^2 more outputs for each pixel, the weights k of a kernel over
    its neighbourhood of gate x gate pixels, and D(x) = c_skip sum_j k_j x_j + c_out F. At low noise
    F must otherwise hand on the noise itself wherever the image is smooth, which a network on
    folded pixels is too narrow for; on flat ground it can now say k = 0, or average (LOG.md)."""

    sigma_data: Tensor

    def __init__(self, net: nn.Module, uncertainty: nn.Module, sigma_data: float, gate: int = 0):
        super().__init__()
        self.net = net
        self.uncertainty = uncertainty
        self.gate = gate
        self.register_buffer("sigma_data", torch.tensor(float(sigma_data)))

    def forward(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        s, sd = sigma[:, None, None, None], self.sigma_data
        c_skip = sd**2 / (s**2 + sd**2)
        c_out = s * sd / (s**2 + sd**2).sqrt()
        c_in = 1 / (s**2 + sd**2).sqrt()
        c_noise = sigma.log() / 4
        F_x = self.net(c_in * x, c_noise, cond).float()
        skip = x
        if self.gate:
            skip = weighted(x, F_x[:, x.shape[1] :], self.gate)
            F_x = F_x[:, : x.shape[1]]
        return c_skip * skip + c_out * F_x

    def log_variance(self, sigma: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """u(sigma): how much of the loss at this noise level is beyond anyone's reach."""
        return self.uncertainty(sigma.log() / 4).float()


def weighted(x: X, logits: Float[Tensor, "batch kernel height width"], side: int) -> X:
    """At each pixel sum_j k_j x_j over its side x side neighbours, zero outside the image.

    k = softmax(0, logits) without its first entry: positive, of a sum below 1."""
    none = torch.zeros_like(logits[:, :1])
    k = (STEEP * torch.cat([none, logits], 1)).softmax(1)[:, 1:]
    neighbours = F.unfold(x, side, padding=side // 2).unflatten(1, (x.shape[1], side**2))
    return (neighbours * k.flatten(2)[:, None]).sum(2).view_as(x)
