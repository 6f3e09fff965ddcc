"""What one output pixel looks at: derivatives of the denoised image with respect to the noisy one.

    G_ij(y, x) = 1/B sum_b sum_c | d x0[b, c, y, x] / d x[b, c, i, j] |      (section F, equation 9)

One forward pass serves all target pixels: their cotangents go back through it as one large batch.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from composcope.diffusion.denoiser import Cond, Denoiser, Sigmas, X, check_cond
from composcope.errors import InputError
from composcope.locality.contract import check_pixels

Sigma = float | Float[Tensor, " batch"]
Pixel = tuple[int, int]  # (y, x): row and column


def image_levels(sigma: Sigma, x: X) -> Sigmas:
    """One noise level an image, as the contract asks."""
    if not isinstance(x, Tensor) or x.ndim != 4 or not len(x):
        found = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x is {found}, not a tensor [batch, channel, height, width]")
    try:
        return torch.as_tensor(sigma, dtype=x.dtype, device=x.device).expand(len(x))
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"sigma is a noise level, or one for each of {len(x)} images, not {sigma!r}"
        ) from None


def pixel_gradient(
    denoiser: Denoiser, x: X, sigma: Sigma, cond: Cond, pixels: Sequence[Pixel], memory: int = 2**28
) -> Float[Tensor, "pixel height width"]:
    """Equation 9 at each of `pixels`; see `pixel_gradients` for `memory`."""
    return pixel_gradients(denoiser, x, sigma, cond, pixels, memory).mean(0)


def pixel_gradients(
    denoiser: Denoiser, x: X, sigma: Sigma, cond: Cond, pixels: Sequence[Pixel], memory: int = 2**28
) -> Float[Tensor, "batch pixel height width"]:
    """Equation 9 before its mean over the batch, so that samples can be resampled.

    memory: bytes that activations may take; samples and cotangents are taken in turns to stay below
        it, down to one sample and one cotangent at a time. The images of a batch must not depend on
        each other."""
    at = image_levels(sigma, x)
    check_cond(cond, x)
    pixels = check_pixels(pixels)
    cotangents = pixel_cotangents(pixels, x)
    one = cond if cond is None else cond[:1]
    samples, together = chunks(denoiser, x[:1], at[:1], one, len(cotangents), memory)
    maps = []
    # No outer graph of the weights; and the attention kernel that vmap can batch.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        for some in torch.arange(len(x), device=x.device).split(samples):
            asked = cond if cond is None else cond[some]
            pullback = vjp(lambda z, s=at[some], c=asked: denoiser(z, s, c), x[some])[1]
            parts = [batched(pullback, c, len(some)) for c in cotangents.split(together)]
            rows = torch.cat(parts, dim=1).unflatten(1, (len(pixels), x.shape[1]))
            # The same c above and below, as printed.
            maps.append(rows.diagonal(dim1=2, dim2=3).abs().sum(-1))
    return torch.cat(maps)


def batched(
    pullback: Callable, cotangents: Tensor, batch: int
) -> Float[Tensor, "batch row channel h w"]:
    """Every image gets the same cotangents: images are independent, so one pull-back serves all."""
    each = cotangents[:, None].expand(-1, batch, -1, -1, -1)
    try:
        return vmap(pullback, out_dims=1)(each)[0]
    except RuntimeError:  # of a layer that vmap cannot batch: one cotangent at a time
        return torch.stack([pullback(one)[0] for one in each], dim=1)


def chunks(
    denoiser: Denoiser, x: X, sigma: Tensor, cond: Cond, rows: int, memory: int
) -> tuple[int, int]:
    """Samples in a forward pass and cotangents in a backward pass: 1 + cotangents samples fit."""
    fit = max(2, memory // max(1, saved_bytes(denoiser, x, sigma, cond)))
    together = min(rows, fit - 1)
    return max(1, fit // (1 + together)), together


def saved_bytes(denoiser: Denoiser, x: X, sigma: Tensor, cond: Cond) -> int:
    """What autograd keeps for one more sample: what it saves for two less what it saves for one."""

    def saved(n: int) -> int:
        seen: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            seen[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor.detach()  # itself would keep the graph that keeps it, for ever

        # Each image another one: equal ones may be denoised once.
        several = x.detach() + torch.arange(n, device=x.device).view(n, 1, 1, 1)
        several.requires_grad_()
        rows = cond if cond is None else cond.expand(n, *cond.shape[1:])
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with torch.enable_grad(), hooks:
            x0 = denoiser(several, sigma.expand(n), rows)
        if not x0.requires_grad:
            reason = "it runs under no_grad, or ignores x"
            raise InputError(f"the denoiser gives no gradient of x0 by x: {reason}")
        return sum(seen.values())

    return saved(2) - saved(1)


def pixel_cotangents(pixels: Sequence[Pixel], x: X) -> Float[Tensor, "row channel h w"]:
    """One image a (pixel, channel), channels running fastest: 1 there, 0 elsewhere."""
    _, channels, height, width = x.shape
    rows = x.new_zeros(len(pixels), channels, channels, height, width)
    for index, (row, column) in enumerate(pixels):
        if not (0 <= row < height and 0 <= column < width):
            image = f"the {height}x{width} image"
            raise InputError(f"the pixel (y={row}, x={column}) is outside {image}")
        rows[index, range(channels), range(channels), row, column] = 1
    return rows.flatten(0, 1)
