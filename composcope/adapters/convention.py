"""What a model predicts, and what that says of x0 where x = x0 + sigma n.

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

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import Sigmas
from composcope.errors import InputError

SMALLEST = 2.0**-24  # stands at most for an alpha of 0, where no x0 is left and sigma has no end
# Checked with a sentence for what it is not, so of any type here.
Numbers: TypeAlias = Any  # a list, an array or a tensor


class Coefficients(NamedTuple):
    """Of x0 = b x + c model(a x, t), one number an image."""

    a: Sigmas
    b: Sigmas
    c: Sigmas
    t: Tensor


# Made of the functions below by functools.partial, so that denoisers can be pickled.
Convention = Callable[[Sigmas], Coefficients]


def eps(steps: "Steps", sigma: Sigmas) -> Coefficients:
    """x0 = x - sigma F."""
    return steps.coefficients(sigma, lambda s: (torch.ones_like(s), -s))


def v(steps: "Steps", sigma: Sigmas) -> Coefficients:
    """x0 = sqrt(alpha_t) x_t - sqrt(1 - alpha_t) F."""
    return steps.coefficients(sigma, lambda s: (1 / (1 + s**2), -s * (1 + s**2).rsqrt()))


def x0(steps: "Steps", sigma: Sigmas) -> Coefficients:
    """x0 = F."""
    return steps.coefficients(sigma, lambda s: (torch.zeros_like(s), torch.ones_like(s)))


def ours(sigma: Sigmas) -> Coefficients:
    """x0 = F(x, sigma)."""
    one = torch.ones_like(sigma)
    return Coefficients(one, torch.zeros_like(sigma), one, sigma)


def flow(last: float, sigma: Sigmas) -> Coefficients:
    """x0 = x_t - t F; t is told to the model as last * t."""
    a = 1 / (1 + sigma)
    t = sigma * a
    return Coefficients(a, a, -t, last * t)


def edm(sigma_data: float, sign: int, sigma: Sigmas) -> Coefficients:
    """x0 = c_skip x + c_out F (EDM, equation 7 and table 1); `sign` is the network's."""
    a = (sigma**2 + sigma_data**2).rsqrt()
    c_out = sigma * sigma_data * a
    return Coefficients(a, (sigma_data * a) ** 2, sign * c_out, sigma.log() / 4)


class Steps:
    """t(sigma) of a model that was trained at the steps of `alphas_cumprod`; see `from_eps`."""

    def __init__(self, alphas_cumprod: Numbers, real_times: bool = False):
        alpha = falling(alphas_cumprod)
        alpha = torch.cat([alpha[:-1], alpha[-1:] or (alpha[-2:-1] / 2).clamp(max=SMALLEST)])
        self.sigmas = ((1 - alpha) / alpha) ** 0.5
        self.real_times = real_times

    def coefficients(
        self, sigma: Sigmas, b_c: Callable[[Sigmas], tuple[Sigmas, Sigmas]]
    ) -> Coefficients:
        """a, b, c and t, from b and c as functions of a noise level that was trained on.

        Beyond the last of these x is brought down to it, as if it were noise alone, which it nearly
        is: x - sigma F would make any error of F as large as sigma."""
        level = sigma.clamp(max=float(self.sigmas[-1]))
        less = ((1 + level**2) / (1 + sigma**2)).sqrt()
        b, c = b_c(level)
        return Coefficients((1 + sigma**2).rsqrt(), less * b, c, self(sigma))

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
