"""The map between images in [-1, 1] and a model's x; its constants are measured from the data.

x = (image - centre) / scale            sigma_data = std(x)"""

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

REACH = 3.0  # where objects end up in x
EXTREME = 0.9999  # how far "reach" is: this quantile of the distances from the centre
Images = Float[Tensor, "n 3 height width"]


class Pixels(nn.Module):
    """`centre` is the mean image [3, h, w] or the mean colour [3, 1, 1]."""

    centre: Tensor
    scale: Tensor

    def __init__(self, centre: Float[Tensor, "3 height width"], scale: float):
        super().__init__()
        self.register_buffer("centre", centre)
        self.register_buffer("scale", torch.tensor(float(scale)))

    @staticmethod
    def measure(images: Images, fixed: bool) -> "Pixels":
        """Centre on the mean image if camera and lamps are `fixed`, else on the mean colour."""
        centre = images.mean(0) if fixed else images.mean((0, 2, 3))[:, None, None]
        distance = (images - centre).abs().flatten()
        rank = int(EXTREME * (distance.numel() - 1))
        return Pixels(centre, float(distance.kthvalue(rank + 1).values) / REACH)

    def encode(self, images: Images) -> Images:
        return (images - self.centre.to(images)) / self.scale.to(images)

    def decode(self, x: Images) -> UInt8[np.ndarray, "n height width 3"]:
        """The nearest bytes, as pictures are kept."""
        images = x * self.scale.to(x) + self.centre.to(x)
        bytes_ = ((images + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
        return bytes_.permute(0, 2, 3, 1).contiguous().cpu().numpy()


def stretched(x: Float[Tensor, "n channel height width"]) -> UInt8[np.ndarray, "n height width 3"]:
    """Pictures of an x that nobody says how to decode: its first channels, each picture from its
    darkest to its brightest value; gray if there are fewer than three."""
    shown = x.detach().float().cpu().numpy()
    shown = shown[:, :3] if x.shape[1] >= 3 else shown[:, :1].repeat(3, 1)
    low = shown.min((1, 2, 3), keepdims=True)
    span = shown.max((1, 2, 3), keepdims=True) - low
    scaled = (shown - low) / np.where(span > 0, span, 1)
    return (scaled * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
