"""The contract in the middle of the project, and what measurements need of a conditioner.

denoiser(x, sigma, cond) -> x0            score: (denoiser(x, sigma, cond) - x) / sigma^2
(EDM, equation 3)
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

# The shapes of the contract, denoiser(x, sigma, cond) -> x0.
X = Float[Tensor, "batch channel height width"]
Sigmas = Float[Tensor, " batch"]
Cond = Float[Tensor, "batch features"] | None
Condition: TypeAlias = Any  # one thing asked for: a location (u, v), a colour name, a word
ConditionSet: TypeAlias = Sequence[Condition]  # what is asked of one image


STEEP = 4.0  # the gate's logit, in outputs of unit magnitude, so that m comes near 0 and 1


@runtime_checkable
class Denoiser(Protocol):
    """Anything that takes the noise off: a trained network, an exact mixture, a wrapper around
    either, SDXL."""

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X: ...


@runtime_checkable
class Conditioner(Protocol):
    """Turns condition sets into `cond`. What is random about it (the slot of a list entry) comes
    from `seed` alone."""

    @property
    def features(self) -> int: ...

    def __call__(
        self, condition_sets: Sequence[ConditionSet], seed: int = 0
    ) -> Float[Tensor, "batch features"]: ...

    def left_out(
        self, condition_set: ConditionSet, seed: int = 0
    ) -> Float[Tensor, "choices features"]:
        """Row 0: the whole set; row k + 1: the set without its k-th condition, all others as they
        were."""
        ...


@runtime_checkable
class SplitConditioner(Conditioner, Protocol):
    """A conditioner whose cond is a sum of parts, one a condition, so that any subset can be made
    from cond itself.

    One whose conditions have places has `places(parts)` too: the (u, v) in [0, 1]^2 that each part
    speaks of.
    """

    def split(self, cond: Float[Tensor, " features"]) -> Float[Tensor, "conditions features"]: ...


@runtime_checkable
class Drawer(Protocol):
    """A denoiser with all that drawing images of conditions takes: a trained run, or a wrapper
    around one.

    `about` are the coordinates under which its measurements are kept: run, snapshot, images,
    weights, intervention.
    """

    @property
    def conditioner(self) -> Any:
        """A Conditioner, or None where nothing is asked."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of x: channel, height, width."""
        ...

    @property
    def about(self) -> Mapping[str, Any]: ...

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X: ...

    def decode(self, x: X) -> UInt8[np.ndarray, "batch height width 3"]:
        """x as pictures."""
        ...


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

    def decode(self, x: X) -> UInt8[np.ndarray, "batch height width 3"]:
        return self.denoiser.decode(x)  # type: ignore[attr-defined]


class Counted(Wrapper):
    """The denoiser it wraps, with a count of its evaluations: one for each image of each call."""

    def __init__(self, denoiser: Denoiser):
        super().__init__(denoiser)
        self.evaluations = 0

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        self.evaluations += len(x)
        return self.denoiser(x, sigma, cond)


class Precond(nn.Module):
    """The Denoiser of a network, by EDM's preconditioning: D(x) = c_skip x + c_out F(c_in x,
    c_noise)  (EDM, eq. 7).

    The coefficients keep the network's input and training target at unit variance for data of
    standard deviation sigma_data (EDM, table 1). `uncertainty` maps c_noise to the log-variance
    u(sigma) of the loss (EDM2, eq. 22).

    With `gate` the network has one more output, m in (0, 1) for each pixel, and D(x) = c_skip (1 -
    m) x + c_out F. At low noise F must otherwise hand on the noise itself wherever the image is
    flat, which a network on folded pixels is too narrow for; with m = 1 there it need not (LOG.md).
    """

    sigma_data: Tensor

    def __init__(
        self, net: nn.Module, uncertainty: nn.Module, sigma_data: float, gate: bool = False
    ):
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
        if self.gate:
            m = (STEEP * F_x[:, -1:]).sigmoid()
            c_skip = c_skip * (1 - m)
            F_x = F_x[:, :-1]
        return c_skip * x + c_out * F_x

    def log_variance(self, sigma: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """u(sigma): how much of the loss at this noise level is beyond anyone's reach."""
        return self.uncertainty(sigma.log() / 4).float()
