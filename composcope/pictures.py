"""The one reader of pictures, PNG and JPEG whatever their file is called, which fails in sentences.

Other formats stay closed: some are programs (PostScript) or are read by libraries of their own."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, ImageOps

from composcope.errors import InputError
from composcope.files import content

FORMATS = ("PNG", "JPEG")
MOST = 2**26  # pixels: 8192 x 8192; a file of a kilobyte can claim many more


def read_picture(source: str | Path | bytes) -> UInt8[np.ndarray, "height width 3"]:
    """The colours of a picture, a file or its bytes, upright: a camera may have kept it turned."""
    with opened(source) as kept:
        picture = ImageOps.exif_transpose(kept)
        if picture.mode.startswith("I"):  # 16 bits of gray, which Pillow would cut off at 255
            gray = (np.asarray(picture) >> 8).astype(np.uint8)
            return np.stack([gray] * 3, axis=-1)
        return np.array(picture.convert("RGB"))


def picture_size(source: str | Path | bytes) -> tuple[int, int]:
    """(width, height) of a picture, without reading its pixels."""
    with opened(source) as picture:
        turned = picture.getexif().get(ExifTags.Base.Orientation, 1) >= 5  # by a quarter
        return picture.size[::-1] if turned else picture.size


@contextmanager
def opened(source: str | Path | bytes) -> Iterator[Image.Image]:
    name = "the picture" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else content(source)
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error.strerror or error})") from None
    try:
        with warnings.catch_warnings():  # of Pillow, which warns of what is refused below
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
        with picture:
            if picture.width * picture.height > MOST:
                raise InputError(
                    f"{name} has {picture.width} x {picture.height} pixels: "
                    f"more than {MOST} are not read"
                )
            yield picture
    except InputError:
        raise
    except Image.UnidentifiedImageError:
        raise InputError(f"{name} is neither a PNG nor a JPEG") from None
    except Exception as error:  # damaged bytes can make a decoder raise anything
        raise InputError(f"{name} is damaged ({error})") from None
