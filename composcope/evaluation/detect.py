"""Find the objects of an image: a small convolutional network marks their centres, and says what
stands there.

    heat[v, u] = exp(-|(u, v) - nearest centre|^2 / 2 r^2)        (Zhou et al. 2019, "Objects as
    Points", section 3)

One network each for 32x32, 64x64 and 128x128 pixels, all with a 64x64 map of answers; other sizes
are resized."""

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from scipy.special import bdtr, betaincinv
from torch import Tensor, nn

from composcope.errors import InputError
from composcope.files import SHIPPED, parse_json
from composcope.scenes.scene import COLORS, SHAPES, SIZES
from composcope.tensors import read_about, read_tensors

RESOLUTIONS = (32, 64, 128)
CELLS = 64  # the map of answers has this many cells a side
BATCH = 128  # images at a time
PARTS = {"heat": 1, "offset": 2, "color": len(COLORS), "shape": len(SHAPES), "size": len(SIZES)}


@dataclass(frozen=True)
class Found:
    """An object in an image: its centre as fractions of the sides, what it is, how sure we are."""

    x: float
    y: float
    color: str
    shape: str
    size: str
    confidence: float


@dataclass(frozen=True)
class Misjudged:
    """Perfect images that a detector misjudges, of `scenes` for each K: not `right`, not `near`."""

    noun: str  # of the conditions: "location"
    way: str  # in which they were chosen
    view: str
    tolerance: float | None  # None for conditions without places
    scenes: int
    right: dict[int, int]
    near: dict[int, int]

    def share(self, K: int, images: int, trained: int) -> float:
        """The share of `images` that a perfect drawer may fail at K, as not `right` up to `trained`
        objects, as not `near` beyond: more would, at the detector's error rate (its upper 95 %
        bound, Clopper and Pearson 1934), happen once in a hundred evaluations. Never half of the
        images or more, so that a blank drawer fails however few."""
        wrong = (self.right if K <= trained else self.near)[K]  # noqa: SIM300 (the paper's)
        rate = betaincinv(wrong + 1, self.scenes - wrong, 0.95) if wrong < self.scenes else 1.0
        most = int((bdtr(np.arange(images + 1), images, rate) >= 0.99).argmax())
        return min(most / images, 0.5 * (1 - 1 / images))


@dataclass(frozen=True)
class About:
    """What is kept in the file of a detector beside its weights."""

    widths: tuple[int, int, int]
    threshold: float
    errors: tuple[Misjudged, ...] = ()


def conv_block(inputs: int, outputs: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, width: int):
        super().__init__()
        self.convs = nn.Sequential(conv_block(width, width), conv_block(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convs(x)


class Detector(nn.Module):
    """Images of one size -> maps of answers; down from 32x32 to 8x8 cells and up again, so that
    each sees them all."""

    def __init__(self, size: int, widths: tuple[int, int, int] = (32, 48, 64)):
        super().__init__()
        fine, mid, coarse = widths
        self.size = size
        self.fold = max(size // CELLS, 1)
        channels = 3 * self.fold**2
        if size == 32:
            self.stem = conv_block(3, fine)
        else:
            self.stem = nn.Sequential(conv_block(channels, 24), conv_block(24, fine, stride=2))
        self.down1 = nn.Sequential(conv_block(fine, mid, stride=2), Block(mid), Block(mid))
        self.down2 = nn.Sequential(conv_block(mid, coarse, stride=2), Block(coarse), Block(coarse))
        self.up2 = nn.Conv2d(coarse, mid, 1)
        self.mid = Block(mid)
        self.up1 = nn.Conv2d(mid, fine, 1)
        self.fine = conv_block(fine, fine)
        last = nn.Conv2d(64, 4 * sum(PARTS.values()), 1)
        # Objects are rare: the heat starts near 0.02.
        nn.init.constant_(last.bias[:4], -4.0)  # type: ignore[index]
        self.answer = nn.Sequential(conv_block(fine, 64, kernel=1), last)
        # Half again as fast on a CPU.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n answers cells cells"]:
        x = self.stem(F.pixel_unshuffle(images * 4 - 2, self.fold))  # CLEVR is dark: mean near 0.4
        half = self.down1(x)
        half = self.mid(half + F.interpolate(self.up2(self.down2(half)), scale_factor=2.0))
        x = self.fine(x + F.interpolate(self.up1(half), scale_factor=2.0))
        return F.pixel_shuffle(self.answer(x), 2)


def peaks(heat: Float[Tensor, "n cells cells"], threshold: float) -> Bool[Tensor, "n cells cells"]:
    """Cells hotter than the threshold and their eight neighbours (of equal ones, the first)."""
    bias = torch.linspace(0, 1e-3, heat.shape[-1] ** 2, device=heat.device).view_as(heat[0])
    heat = heat - bias
    return (heat > threshold) & (heat == F.max_pool2d(heat[:, None], 3, 1, 1)[:, 0])


def read_off(
    answers: Float[Tensor, "n answers cells cells"], threshold: float
) -> list[list[Found]]:
    """The objects that maps of answers speak of, from left to right."""
    found: list[list[Found]] = [[] for _ in answers]
    heat = answers[:, 0].sigmoid()
    image, row, column = peaks(heat, threshold).nonzero(as_tuple=True)
    at = answers[image, :, row, column]
    _, offset, color, shape, size = at.split(list(PARTS.values()), dim=1)
    x, y = ((torch.stack([column, row], 1) + 0.5 + offset) / answers.shape[-1]).T
    looks = color.argmax(1), shape.argmax(1), size.argmax(1)
    columns = image, x, y, *looks, heat[image, row, column]
    for i, x, y, c, s, z, p in zip(*(part.tolist() for part in columns), strict=True):
        found[i].append(Found(x, y, tuple(COLORS)[c], SHAPES[s], tuple(SIZES)[z], p))
    return [sorted(one, key=lambda f: f.x) for one in found]


def detector_path(size: int) -> Path:
    return SHIPPED / f"detector{size}.safetensors"


@cache
def fingerprint(size: int) -> str:
    return hashlib.sha256(detector_path(size).read_bytes()).hexdigest()


@cache
def load_detector(size: int) -> tuple[Detector, About]:
    """The shipped network for images of `size` pixels a side, and what was measured of it."""
    path = detector_path(size)
    about: About = parse_json(read_about(path)["about"], About, str(path))
    weights = {name: tensor.float() for name, tensor in read_tensors(path, finite=True).items()}
    detector = Detector(size, about.widths)
    detector.load_state_dict(weights, strict=False)
    return detector.eval(), about


def detector_of(images: UInt8[ndarray, "n h w 3"]) -> str:
    """Which detector these images go to, as rows name it."""
    return fingerprint(nearest_size(*images.shape[1:3]))[:8]


def nearest_size(height: int, width: int) -> int:
    """The size of the network for an image of height x width: nearest in the ratio of areas."""
    return min(RESOLUTIONS, key=lambda size: abs(math.log(height * width / size**2)))


def detect(images: UInt8[ndarray, "n h w 3"]) -> list[list[Found]]:
    """The objects in each image, a list for each: place, colour, shape, size, confidence. Of two
    objects that have merged, one is found."""
    try:
        images = np.ascontiguousarray(images)
    except ValueError:
        raise InputError("detect takes images of one size; give those of each size alone") from None
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        given = f"{images.dtype} {list(images.shape)}"
        raise InputError(f"detect takes uint8 images [n, h, w, 3], not {given}")
    if not images[:1].size:
        return [[] for _ in images]
    detector, about = load_detector(nearest_size(*images.shape[1:3]))
    return find_objects(detector, images, about.threshold)


@torch.inference_mode()
def find_objects(
    detector: Detector, images: UInt8[ndarray, "n h w 3"], threshold: float
) -> list[list[Found]]:
    """What a detector sees, image by image; those of another size are resized to its own."""
    found: list[list[Found]] = []
    size = (detector.size, detector.size)
    for some in torch.tensor(images).split(BATCH):  # a copy: pictures of PIL cannot be written to
        pixels = some.permute(0, 3, 1, 2).float()
        pixels = pixels.contiguous(memory_format=torch.channels_last) / 255
        if pixels.shape[2:] != size:
            pixels = F.interpolate(pixels, size, mode="bilinear", antialias=True)
        found += read_off(detector(pixels), threshold)
    return found
