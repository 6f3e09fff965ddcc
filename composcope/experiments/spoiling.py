"""Renders are clean and drawn images are not: spoil them alike, so that the detector holds on both.

image -> light, contrast, tint -> ragged outlines -> mottled objects -> blur -> grain everywhere"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Images = Float[Tensor, "n 3 h w"]


def spoil(images: Images, source: torch.Generator) -> Images:
    """Each kind of spoiling in about half of the images."""
    n, _, height, width = images.shape

    def strength(most: float) -> Tensor:  # 0 in half of the images, else uniform up to `most`
        return (torch.rand(n, 1, 1, 1, generator=source) * 2 - 1).clamp(min=0) * most

    def normal(channels: int) -> Tensor:
        return torch.randn(n, channels, 1, 1, generator=source)

    def grain() -> Tensor:
        fine = torch.randn(n, 3, height, width, generator=source)
        return torch.where(torch.rand(n, 1, 1, 1, generator=source) < 0.5, fine, 2 * blurred(fine))

    x = (images - 0.4) * torch.exp(strength(0.2) * normal(1)) + 0.4
    x = x * torch.exp(strength(0.2) * normal(1) + strength(0.08) * normal(3))
    x = ragged(x, strength(height / 40), source)
    ground = F.interpolate(F.avg_pool2d(x, height // 4), (height, width), mode="bilinear")
    x = x + strength(0.6) * (x - ground) * grain()
    for _ in range(1 if height == 32 else 2):
        x = torch.lerp(x, blurred(x), strength(1.0))
    x = x + strength(0.045) * grain()
    return (x.clamp(0, 1) * 255).round() / 255


def ragged(x: Images, reach: Float[Tensor, "n 1 1 1"], source: torch.Generator) -> Images:
    """Every pixel p taken from a place nearby: x(p + reach n), n normal, no two alike."""
    n, _, height, width = x.shape
    shift = reach[:, 0] * torch.randn(2, n, height, width, generator=source)
    row = (torch.arange(height)[:, None] + shift[0]).round().long().clamp(0, height - 1)
    column = (torch.arange(width) + shift[1]).round().long().clamp(0, width - 1)
    return x[torch.arange(n)[:, None, None], :, row, column].permute(0, 3, 1, 2)


def blurred(x: Images) -> Images:
    """A 3x3 binomial blur."""
    taps = torch.tensor([0.25, 0.5, 0.25])
    kernel = torch.outer(taps, taps).expand(3, 1, 3, 3)
    return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), kernel, groups=3)
