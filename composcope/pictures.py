"""The one reader of pictures: PNG and JPEG, of a size that can be meant, and nothing else."""

import io
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from composcope.errors import InputError

FORMATS = ("PNG", "JPEG")
PIXELS = 2**26  # the most that a picture may have


def read_picture(source: str | Path | bytes) -> UInt8[np.ndarray, "height width 3"]:
    """The picture of a file, or of the bytes of one."""
    name = "a picture" if isinstance(source, bytes) else str(source)
    content = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with Image.open(content, formats=FORMATS) as image:
            if image.width * image.height > PIXELS:
                raise InputError(f"{name} has {image.width}x{image.height} pixels: too many")
            return np.asarray(image.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"{name} does not exist") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{name} is not an image, PNG or JPEG ({error})") from None
