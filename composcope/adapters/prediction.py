"""Models that predict eps, v, a flow or x0 as denoisers of x = x0 + sigma n.

    x0 = b x + c model(a x, t[, cond])          a, b, c and t are functions of sigma = s

    prediction    a                     b              c               t
    eps           1 / sqrt(1 + s^2)     1              -s              from alphas_cumprod
    v             1 / sqrt(1 + s^2)     1 / (1 + s^2)  -s a            from alphas_cumprod
    x0            1 / sqrt(1 + s^2)     0              1               from alphas_cumprod
    flow          1 / (1 + s)           1 / (1 + s)    -s / (1 + s)    s / (1 + s)
    EDM           1 / sqrt(sd^2 + s^2)  (sd a)^2       s sd a          ln(s) / 4

The first three were trained on x_t = sqrt(alpha_t) x0 + sqrt(1 - alpha_t) n, where alpha_t is
alphas_cumprod[t], so that sigma_t = sqrt((1 - alpha_t) / alpha_t); a flow was trained on
x_t = (1 - t) x0 + t n, EDM's networks on images of standard deviation sd."""

import operator
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Sigmas, X, takes
from composcope.diffusion.pixels import Pixels, stretched
from composcope.errors import InputError

SMALLEST = 2.0**-24  # stands for an alpha of 0, at which no x0 is left and sigma has no end
Shape = tuple[int, int, int]
# Checked with a sentence for what they are not, so of any type here.
Model: TypeAlias = Any  # model(x_t, t) -> prediction, or model(x_t, t, cond)
Numbers: TypeAlias = Any  # a list, an array or a tensor


class Coefficients(NamedTuple):
    """Of x0 = b x + c model(a x, t), one number an image."""

    a: Sigmas
    b: Sigmas
    c: Sigmas
    t: Tensor


Convention = Callable[[Sigmas], Coefficients]


class Adapted:
    """A Denoiser around a model of another convention; with a `shape` and a conditioner, a Drawer.

    None as cond asks for nothing: the model is called as model(x_t, t), or, where it cannot be,
    with the cond that the conditioner makes of no condition.

    It is differentiable wherever the model is. `model` is what was given and is used as it is: put
    it into eval mode if it has dropout."""

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
            kind = name_of(model)
            called = "model(x_t, t), or model(x_t, t, cond)"
            raise InputError(f"a model is called as {called}; {kind} cannot be")
        if shape is not None:
            check_shape(shape)
        self.model = model
        self.convention = convention
        self.conditioner = conditioner
        self.decode = decode or pictures
        self.about: Mapping[str, Any] = {"run": name or name_of(model)}
        self._shape = shape

    def __call__(self, x: X, sigma: Any, cond: Cond = None) -> X:
        at = levels(x, sigma)
        self.check_cond(cond, x)
        a, b, c, t = self.convention(at)
        x_t = per_image(a, x) * x
        if cond is None and self.conditioner is not None and not takes(self.model, 2):
            cond = self.conditioner([()]).to(x).expand(len(x), -1)
        F = self.model(x_t, t) if cond is None else self.model(x_t, t, cond)
        return per_image(b, x) * x + per_image(c, x) * like(F, x)

    def check_cond(self, cond: Any, x: X) -> None:
        """A row of cond that is too few would be taken for all images, and nobody would know."""
        if cond is None:
            return
        if not isinstance(cond, Tensor) or len(cond) != len(x):
            given = f"{len(cond)} rows" if isinstance(cond, Tensor) else type(cond).__name__
            raise InputError(
                f"cond is {given} for {len(x)} images; it is a tensor with a row for each, such as "
                "conditioner(condition_sets)"
            )
        if not takes(self.model, 3):
            raise InputError(
                "the model is called as model(x_t, t): cond cannot be told to it; give one that "
                "is called as model(x_t, t, cond)"
            )

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
    return Adapted(model, eps(Steps(alphas_cumprod, real_times)), conditioner, shape)


def from_v(
    model: Model,
    alphas_cumprod: Numbers,
    real_times: bool = False,
    conditioner: Any = None,
    shape: Shape | None = None,
) -> Adapted:
    """The Denoiser of a model(x_t, t[, cond]) -> v = sqrt(alpha_t) n - sqrt(1 - alpha_t) x0.

    The arguments are those of `from_eps`."""
    return Adapted(model, v(Steps(alphas_cumprod, real_times)), conditioner, shape)


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
    return Adapted(model, x0(Steps(alphas_cumprod, real_times)), conditioner, shape)


def from_flow(
    model: Model, last: float = 1.0, conditioner: Any = None, shape: Shape | None = None
) -> Adapted:
    """The Denoiser of a rectified flow: model(x_t, t[, cond]) -> n - x0 at x_t = (1 - t) x0 + t n.

    last: what the model calls the time of pure noise; t runs from 0 to there, in real numbers. Many
        models count to 1000. The other arguments are those of `from_eps`."""
    if not isinstance(last, Real) or not last > 0:
        raise InputError(f"last is the time of pure noise, a number above 0, not {last!r}")
    return Adapted(model, flow(float(last)), conditioner, shape)


def eps(steps: "Steps") -> Convention:
    """x0 = x - sigma F."""
    return steps.convention(lambda s: (torch.ones_like(s), -s))


def v(steps: "Steps") -> Convention:
    """x0 = sqrt(alpha_t) x_t - sqrt(1 - alpha_t) F."""
    return steps.convention(lambda s: (1 / (1 + s**2), -s * (1 + s**2).rsqrt()))


def x0(steps: "Steps") -> Convention:
    """x0 = F."""
    return steps.convention(lambda s: (torch.zeros_like(s), torch.ones_like(s)))


def ours(sigma: Sigmas) -> Coefficients:
    """x0 = F(x, sigma)."""
    one = torch.ones_like(sigma)
    return Coefficients(one, torch.zeros_like(sigma), one, sigma)


def flow(last: float) -> Convention:
    """x0 = x_t - t F; t is told to the model as last * t."""

    def convention(sigma: Sigmas) -> Coefficients:
        a = 1 / (1 + sigma)
        t = sigma * a
        return Coefficients(a, a, -t, last * t)

    return convention


def edm(sigma_data: float, sign: int = 1) -> Convention:
    """x0 = c_skip x + c_out F (EDM, equation 7 and table 1); `sign` is the network's."""

    def convention(sigma: Sigmas) -> Coefficients:
        a = (sigma**2 + sigma_data**2).rsqrt()
        c_out = sigma * sigma_data * a
        return Coefficients(a, (sigma_data * a) ** 2, sign * c_out, sigma.log() / 4)

    return convention


class Steps:
    """t(sigma) of a model that was trained at the steps of `alphas_cumprod`; see `from_eps`."""

    def __init__(self, alphas_cumprod: Numbers, real_times: bool = False):
        alpha = falling(alphas_cumprod).clamp(min=SMALLEST)
        self.sigmas = ((1 - alpha) / alpha) ** 0.5
        self.real_times = real_times

    def convention(self, b_c: Callable[[Sigmas], tuple[Sigmas, Sigmas]]) -> Convention:
        """a, b, c and t, from b and c as functions of a noise level that was trained on.

        Beyond the last of these x is brought down to it, as if it were noise alone, which it nearly
        is: x - sigma F would make any error of F as large as sigma."""

        def coefficients(sigma: Sigmas) -> Coefficients:
            level = sigma.clamp(max=float(self.sigmas[-1]))
            less = ((1 + level**2) / (1 + sigma**2)).sqrt()
            b, c = b_c(level)
            return Coefficients((1 + sigma**2).rsqrt(), less * b, c, self(sigma))

        return coefficients

    def __call__(self, sigma: Sigmas) -> Tensor:
        # In bfloat16 neighbouring steps would be one and the same.
        sigma = sigma.to(torch.promote_types(sigma.dtype, torch.float32))
        table = self.sigmas.to(sigma)
        log = table.log()
        if not self.real_times:
            return (sigma.log()[:, None] - log).abs().argmin(1)
        low = ((sigma[:, None] >= table).sum(1) - 1).clamp(0, len(table) - 2)
        return low + ((sigma.log() - log[low]) / (log[low + 1] - log[low])).clamp(0, 1)


def falling(alphas_cumprod: Numbers) -> Float[Tensor, " steps"]:
    """alphas_cumprod as a tensor, if it can be one: below 1, falling, 0 at most in the end."""
    try:
        alpha = torch.as_tensor(alphas_cumprod).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InputError("alphas_cumprod must be a list or a tensor of numbers") from None
    if alpha.ndim != 1 or len(alpha) < 2 or not alpha.is_floating_point():
        raise InputError(
            f"alphas_cumprod must have one number a training step; it is {alpha.dtype} of shape "
            f"{list(alpha.shape)}"
        )
    inside = (alpha < 1) & (alpha >= 0)
    if not bool(inside.all()):
        step = int((~inside).nonzero()[0])
        raise InputError(f"alphas_cumprod[{step}] is {float(alpha[step]):g}, not between 0 and 1")
    rising = (alpha.diff() >= 0).nonzero()
    if len(rising):
        step = int(rising[0])
        raise InputError(
            "alphas_cumprod must fall, as x0 is lost in noise; it goes from "
            f"{float(alpha[step]):g} at step {step} to {float(alpha[step + 1]):g} "
            "(betas are not alphas_cumprod)"
        )
    return alpha


def name_of(model: Model) -> str:
    return getattr(model, "__name__", type(model).__name__)


def check_shape(shape: Any) -> None:
    try:
        sides = [operator.index(side) for side in shape]
    except TypeError:  # of what is no list, or no whole number
        sides = []
    if len(sides) != 3 or min(sides) < 1:
        raise InputError(f"shape is (channels, height, width), not {shape!r}")


def levels(x: Any, sigma: object) -> Sigmas:
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
