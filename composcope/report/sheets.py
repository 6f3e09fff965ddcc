"""A sheet of images: rows and columns of pictures, enlarged, a red dot at each place asked for.

A ring marks each place where an object was found; so a dot in a ring is a condition met."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw
from PIL.Image import Image as Picture

Places = Sequence[tuple[float, float]]  # (u, v) in [0, 1]^2
Each = Sequence[Places] | None  # those of each image
SIDE = 128  # of a picture on the sheet, at least
GAP = 4
ASKED = (230, 30, 30)
FOUND = GROUND = (255, 255, 255)


def sheet(images: np.ndarray, asked: Each = None, found: Each = None, columns: int = 8) -> Picture:
    """uint8 [n, h, w, 3] -> one picture, row by row; places asked and found for each image."""
    n, height, width, _ = images.shape
    zoom = max(1, -(-SIDE // width))
    h, w = height * zoom + GAP, width * zoom + GAP
    page = Image.new("RGB", (min(n, columns) * w + GAP, -(-n // columns) * h + GAP), GROUND)
    size = (width * zoom, height * zoom)
    for i, image in enumerate(images):
        picture = Image.fromarray(image).resize(size, Image.Resampling.NEAREST)
        mark(picture, found[i] if found else (), asked[i] if asked else ())
        page.paste(picture, (GAP + i % columns * w, GAP + i // columns * h))
    return page


def mark(picture: Picture, found: Places, asked: Places) -> None:
    """Rings of an eighth of the width, dots of a thirtieth, in place."""
    pen, (width, height) = ImageDraw.Draw(picture), picture.size
    for u, v in found:
        pen.circle((u * width, v * height), width / 16, outline=FOUND, width=max(1, width // 100))
    for u, v in asked:
        pen.circle((u * width, v * height), width / 64, fill=ASKED)
