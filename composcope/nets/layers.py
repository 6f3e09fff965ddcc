"""Magnitude-preserving layers of EDM2 (Karras et al. 2024, config G): unit variance in and out.

    w = normalize(v) gain / sqrt(fan_in)    every weight is used normalised (equations 47, 66)

Constant factors (the 0.596 of MP-SiLU, the balance of MP-sum) are moved into the gain of the
neighbouring convolution: the same function with fewer passes over memory."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

EPS = 1e-4
SILU = 0.596  # root mean square of silu(n), n ~ N(0, 1); equation 81


def normalize(x: Float[Tensor, "..."], dim: int | None = None) -> Float[Tensor, "..."]:
    """Scale to unit root mean square along `dim`, or along all but the first (equation 47)."""
    over = [dim] if dim is not None else list(range(1, x.ndim))
    precise = torch.promote_types(x.dtype, torch.float32)
    norm = torch.linalg.vector_norm(x, dim=over, keepdim=True, dtype=precise)
    size = torch.add(EPS, norm, alpha=math.sqrt(norm.numel() / x.numel()))
    return x * size.reciprocal().to(x.dtype)


def mp_silu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return F.silu(x) / SILU


def balance(t: float) -> tuple[float, float]:
    """The factors of a (1 - t) + b t that keep the root mean square (equation 88)."""
    size = math.hypot(1 - t, t)
    return (1 - t) / size, t / size


def mp_sum(a: Float[Tensor, "..."], b: Float[Tensor, "..."], t: float) -> Float[Tensor, "..."]:
    of_a, of_b = balance(t)
    return torch.add(a * of_a, b, alpha=of_b)


def mp_cat(
    a: Float[Tensor, "batch a height width"], b: Float[Tensor, "batch b height width"], t: float
) -> Float[Tensor, "batch c height width"]:
    """Concatenate channels; a and b count as 1 - t to t whatever their width (equation 103)."""
    total = a.shape[1] + b.shape[1]
    factors = [s * math.sqrt(total / x.shape[1]) for s, x in zip(balance(t), (a, b), strict=True)]
    scaled = [x if abs(s - 1) < 1e-12 else x * s for s, x in zip(factors, (a, b), strict=True)]
    return torch.cat(scaled, dim=1)


def crop(
    x: Float[Tensor, "*lead height width"], side: int | None, more: int = 0
) -> Float[Tensor, "*lead h w"]:
    """The central square of side `side` + `more`, or all there is if that is not as large."""
    if side is None or side + more >= x.shape[-1]:
        return x
    start = (x.shape[-1] - side - more) // 2
    return x[..., start : start + side + more, start : start + side + more]


class MPFourier(nn.Module):
    """Random Fourier features of a number, each of unit variance (equation 75)."""

    freqs: Tensor
    phases: Tensor

    def __init__(self, channels: int):
        super().__init__()
        self.register_buffer("freqs", 2 * math.pi * torch.randn(channels))
        self.register_buffer("phases", 2 * math.pi * torch.rand(channels))

    def forward(self, x: Float[Tensor, " batch"]) -> Float[Tensor, "batch channels"]:
        return torch.cos(torch.outer(x, self.freqs) + self.phases) * math.sqrt(2)


class MPConv(nn.Module):
    """Convolution (kernel 1, 3, ...) or linear map (0), weights forced to unit norm (eq. 66)."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 0):
        super().__init__()
        window = [kernel, kernel] if kernel else []
        self.weight = nn.Parameter(torch.randn(outputs, inputs, *window))

    def effective(self, gain: float | Tensor = 1.0) -> Tensor:
        """normalize(weight) gain / sqrt(fan_in), as one scale for each output."""
        root = math.sqrt(self.weight[0].numel())
        over = list(range(1, self.weight.ndim))
        norm = torch.linalg.vector_norm(self.weight, dim=over, keepdim=True)
        return self.weight * (gain / (norm + EPS * root))

    def forward(
        self,
        x: Tensor,
        gain: float | Tensor = 1.0,
        keep: int | None = None,
        shared: Tensor | None = None,
    ) -> Tensor:
        """All of the output, or its central square of side `keep`: the border of x then does what
        padding would. `shared` are further channels that are the same in every image, [1, c, h, w]:
        what they give is computed once."""
        w = self.effective(gain)
        if shared is not None:
            own = x.shape[1]
            return conv(x, w[:, :own]) + conv(shared, w[:, own:])
        if w.ndim == 2:
            return F.linear(x, w)
        x = crop(x, keep, 2 * (w.shape[-1] // 2))
        return conv(x, w, 0 if keep is None else max(x.shape[-1] - keep, 0) // 2)


def conv(x: Tensor, w: Tensor, spare: int = 0) -> Tensor:
    """A convolution that keeps the size of x, less `spare` pixels on each side.

    Weights in channels-last order make the whole network run so: 4 to 25 % faster on CPUs."""
    padding = w.shape[-1] // 2 - spare
    return F.conv2d(x, w.contiguous(memory_format=torch.channels_last), padding=padding)


@torch.no_grad()
def renormalize(module: nn.Module) -> None:
    """Put every weight back on its sphere, in place: outputs and the effective step size stay."""
    for layer in module.modules():
        if isinstance(layer, MPConv):
            layer.weight.copy_(normalize(layer.weight))


def cosine_attention(
    qkv: Float[Tensor, "batch qkv height width"], heads: int
) -> Float[Tensor, "batch c height width"]:
    """Self-attention of pixels; queries, keys and values have unit magnitude (EDM2, section 2.3).

    The channels of `qkv` are ordered (head, channel of the head, which of q k v)."""
    batch, _, height, width = qkv.shape
    rows = qkv.permute(0, 2, 3, 1).reshape(batch, height * width, heads, -1, 3)
    # Channels side by side in memory: norms and products over them take 0.6 of the time.
    q, k, v = normalize(rows.permute(4, 0, 2, 1, 3).contiguous(), dim=4)
    y = F.scaled_dot_product_attention(q, k, v)
    return y.transpose(1, 2).reshape(batch, height, width, -1).permute(0, 3, 1, 2)
