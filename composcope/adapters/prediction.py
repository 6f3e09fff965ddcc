"""Models that predict eps, v, a flow or x0 as denoisers of x = x0 + sigma n; what each prediction
says of x0 is in convention.py."""

import operator
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from composcope.adapters.convention import Convention, Numbers, Steps, eps, flow, ours, v, x0
from composcope.diffusion.denoiser import Cond, Sigmas, X, check_cond, takes
from composcope.diffusion.pixels import Pixels, stretched
from composcope.errors import InputError

Shape = tuple[int, int, int]
# Checked with a sentence for what they are not, so of any type here.
Model: TypeAlias = Any  # model(x_t, t) -> prediction, or model(x_t, t, cond)


class Adapted:
    """A Denoiser around a model of another convention; with a `shape` and a conditioner, a Drawer.

    None as cond asks for nothing: the model is called as model(x_t, t), or, where it cannot be,
    with the cond that the conditioner makes of no condition; without a conditioner, with None.

    It is differentiable wherever the model is. `model` is what was given and is used as it is: put
    it into eval mode if it has dropout."""

    view = "full"  # what of the official frame its pictures show: full or square

    def __init__(
        self,
        model: Model,
        convention: Convention,
        conditioner: Any = None,
        shape: Shape | None = None,
        decode: Callable[[X], UInt8[np.ndarray, "batch height width 3"]] | None = None,
        name: str | None = None,
    ):
        if not takes(model, 2) and not takes(model, 3):
            kind = model_name(model)
            called = "model(x_t, t), or model(x_t, t, cond)"
            raise InputError(f"a model is called as {called}; {kind} cannot be")
        if shape is not None:
            check_shape(shape)
        self.model = model
        self.convention = convention
        self.conditioner = conditioner
        self.decode = decode or pictures
        self.about: Mapping[str, Any] = {"run": name or model_name(model)}
        self._shape = shape

    def __call__(self, x: X, sigma: Any, cond: Cond = None) -> X:
        at = sigmas_of(x, sigma)
        if self._shape is not None and x.shape[1] != self._shape[0]:
            raise InputError(f"x has {x.shape[1]} channels; the model takes {self._shape[0]}")
        check_cond(cond, x)
        if cond is not None and not takes(self.model, 3):
            raise InputError(
                "the model is called as model(x_t, t): cond cannot be told to it; give one that "
                "is called as model(x_t, t, cond)"
            )
        a, b, c, t = self.convention(at)
        x_t = per_image(a, x) * x
        alone = cond is None and takes(self.model, 2)
        if cond is None and self.conditioner is not None and not alone:
            cond = self.conditioner([()]).to(x).expand(len(x), -1)
        F = self.model(x_t, t) if alone else self.model(x_t, t, cond)
        return per_image(b, x) * x + per_image(c, x) * like(F, x)

    @property
    def shape(self) -> Shape:
        if self._shape is None:
            raise InputError(
                "to draw with an adapted model the size of its images must be known; "
                "give it as shape=(channels, height, width)"
            )
        return self._shape


def from_eps(
    model: Model,
    alphas_cumprod: Numbers,
    real_times: bool = False,
    conditioner: Any = None,
    shape: Shape | None = None,
) -> Adapted:
    """The Denoiser of a model(x_t, t[, cond]) that predicts the noise eps, as in DDPM.

    alphas_cumprod: the products of (1 - beta) up to each training step, falling.
    real_times: whether t may lie between two training steps. If so it is interpolated linearly in
        log sigma and is a float; if not (a table of embeddings, say) it is the nearest step in log
        sigma, an integer. Below the first step t stays there; above the last one the model is
        asked at the last one, with x brought down to its noise level.
    conditioner: turns condition sets into the `cond` that the model takes, for `audit` and `draw`.
    shape: of x, (channels, height, width), for `draw`; images are taken to lie in [-1, 1].

    An own DDPM with ten classes and, as class 10, no class:

        from composcope import audit
        from composcope.adapters import Classes, from_eps

        betas = torch.linspace(1e-4, 0.02, 1000)
        denoiser = from_eps(
            lambda x_t, t, cond: net(x_t, t, cond.argmax(1)),
            (1 - betas).cumprod(0),
            conditioner=Classes(10, null=10),
            shape=(3, 32, 32),
        )
        print(audit(denoiser, images, [(label,) for label in labels], denoiser.conditioner).table())
    """
    return Adapted(model, partial(eps, Steps(alphas_cumprod, real_times)), conditioner, shape)


def from_v(
    model: Model,
    alphas_cumprod: Numbers,
    real_times: bool = False,
    conditioner: Any = None,
    shape: Shape | None = None,
) -> Adapted:
    """The Denoiser of a model(x_t, t[, cond]) -> v = sqrt(alpha_t) n - sqrt(1 - alpha_t) x0.

    The arguments are those of `from_eps`."""
    return Adapted(model, partial(v, Steps(alphas_cumprod, real_times)), conditioner, shape)


def from_x0(
    model: Model,
    alphas_cumprod: Numbers | None = None,
    real_times: bool = False,
    conditioner: Any = None,
    shape: Shape | None = None,
) -> Adapted:
    """The Denoiser of a model(x_t, t[, cond]) that predicts x0; the arguments are `from_eps`'s.

    Without alphas_cumprod the model is called as model(x, sigma[, cond]): a Denoiser already, which
    gets a conditioner and a shape here."""
    if alphas_cumprod is None:
        return Adapted(model, ours, conditioner, shape)
    return Adapted(model, partial(x0, Steps(alphas_cumprod, real_times)), conditioner, shape)


def from_flow(
    model: Model, last: float = 1.0, conditioner: Any = None, shape: Shape | None = None
) -> Adapted:
    """The Denoiser of a rectified flow: model(x_t, t[, cond]) -> n - x0 at x_t = (1 - t) x0 + t n.

    last: what the model calls the time of pure noise; t runs from 0 to there, in real numbers. Many
        models count to 1000. The other arguments are those of `from_eps`."""
    if not isinstance(last, Real) or not last > 0:
        raise InputError(f"last is the time of pure noise, a number above 0, not {last!r}")
    return Adapted(model, partial(flow, float(last)), conditioner, shape)


def model_name(model: Model) -> str:
    return getattr(model, "__name__", type(model).__name__)


def check_shape(shape: Any) -> None:
    try:
        sides = [operator.index(side) for side in shape]
    except TypeError:  # of what is no list, or no whole number
        sides = []
    if len(sides) != 3 or min(sides) < 1:
        raise InputError(f"shape is (channels, height, width), not {shape!r}")


def sigmas_of(x: Any, sigma: object) -> Sigmas:
    """sigma, if it is one noise level an image of x."""
    if not isinstance(x, Tensor) or x.ndim != 4:
        given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x is {given}, not a tensor [batch, channel, height, width]")
    if not isinstance(sigma, Tensor):
        one = isinstance(sigma, Real)
        advice = f"torch.full((len(x),), {sigma})" if one else "torch.as_tensor(sigma)"
        raise InputError(
            f"sigma is a {type(sigma).__name__}; give one noise level an image, as a tensor: "
            f"{advice}"
        )
    if sigma.shape != x.shape[:1]:
        raise InputError(
            f"sigma has the shape {list(sigma.shape)} for {len(x)} images; give one noise level "
            "an image: sigma.expand(len(x))"
        )
    return sigma


def like(F: object, x: X) -> X:
    """What the model returned, if it has the shape of x."""
    if not isinstance(F, Tensor):
        raise InputError(
            f"the model returns a {type(F).__name__}, not a tensor; give a function that takes the "
            "tensor out of it (models of diffusers: from_diffusers)"
        )
    if F.shape != x.shape:
        twice = F.ndim == 4 and F.shape[1] == 2 * x.shape[1]
        advice = "; if the second half is a variance, cut it off" if twice else ""
        raise InputError(
            f"the model returns {list(F.shape)} for x of {list(x.shape)}; its prediction must have "
            f"the shape of x{advice}"
        )
    return F


def per_image(number: Sigmas, x: X) -> Float[Tensor, "batch 1 1 1"]:
    return number[:, None, None, None].to(x.dtype)


def pictures(x: X) -> UInt8[np.ndarray, "batch height width 3"]:
    """x in [-1, 1] as bytes; what has one channel is gray, latents are shown as `stretched`."""
    if x.shape[1] not in (1, 3):
        return stretched(x)
    return Pixels(torch.zeros(3, 1, 1), 1.0).decode(x.expand(-1, 3, -1, -1))
