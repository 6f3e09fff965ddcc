"""Where pixels are in relation to places (u, v), fractions of width and height."""

import torch
from jaxtyping import Float
from torch import Tensor


def offsets(
    places: Float[Tensor, "place 2"], size: tuple[int, int]
) -> Float[Tensor, "2 place height width"]:
    """How far each pixel's centre is from each place, down and across, in image sides."""
    height, width = size
    u, v = places.T[..., None, None]
    rows = (torch.arange(height, device=u.device)[:, None] + 0.5) / height
    columns = (torch.arange(width, device=u.device) + 0.5) / width
    return torch.stack(torch.broadcast_tensors((rows - v).abs(), (columns - u).abs()))
