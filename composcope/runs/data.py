"""What a run is trained on: (position, count) -> Examples in the model's x."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.arrays import read_npz
from composcope.diffusion.lesson import Examples, Make
from composcope.diffusion.loss import generator
from composcope.diffusion.pixels import Pixels
from composcope.errors import InputError
from composcope.nets.local_unet import LocalUNet
from composcope.pictures import read_picture
from composcope.progress import track
from composcope.runs.config import USUAL_OBJECTS, Config
from composcope.runs.model import Model, conditioner_of
from composcope.scenes import sources
from composcope.scenes.condition import VOCABULARY
from composcope.scenes.dataset import Folder, Stream
from composcope.scenes.parts import SumOfParts
from composcope.scenes.rules import Rules

WANTED = "PNG or JPEG files right in it"
MEASURED = 2048  # images from which the pixel constants are measured
AT_ONCE = 64  # of them

Image = Float[Tensor, "n 3 height width"]
Reader = Callable[[], np.ndarray]  # a picture, [height, width, 3]
Images = Callable[[int, int], tuple[Image, Float[Tensor, "n features"] | None]]


def complete_config(config: Config) -> Config:
    """The configuration with what its images say, the words of the vocabulary and the numbers of
    objects, so that the run explains itself."""
    if config.field and not config.data:
        raise InputError(f"--field {config.field} is of the metadata of images: give --data")
    if config.conditioner == VOCABULARY and not config.words:
        if not config.data:
            raise InputError("a vocabulary is made from the metadata of images: give --data")
        config = replace(config, words=sources.vocabulary_of(config.data, config.field))
    conditioner = conditioner_of(config)
    if not config.data or conditioner is None:
        return config
    fewest, most = image_folder(config, conditioner).objects
    if config.objects not in (USUAL_OBJECTS, (fewest, most)):
        given = "-".join(map(str, config.objects))
        raise InputError(f"--objects {given}: the images of {config.data} have {fewest}-{most}")
    return replace(config, objects=(fewest, most))


def image_folder(config: Config, conditioner: SumOfParts) -> Folder:
    """The images on disk of a run with conditions."""
    side, seed = config.architecture.resolution, config.recipe.seed
    how = (config.labels, seed, config.view, config.field)
    return Folder(str(config.data), side, conditioner, *how)


def images_of(config: Config) -> Images:
    """(position, count) -> images in [-1, 1] and cond: scenes drawn here, or images on disk."""
    side = config.architecture.resolution
    seed = config.recipe.seed
    conditioner = conditioner_of(config)
    if conditioner is None:
        if not config.data:
            needed = "needs --data, an .npz or a folder of pictures"
            raise InputError(f"a model of images without conditions {needed}")
        return Stored(Path(config.data), side, seed, config.view)
    if config.data:
        return batches(image_folder(config, conditioner))
    rules = Rules(objects=config.objects, view=config.view)
    if not config.jitter:
        rules = replace(rules, camera_jitter=0.0, lamp_jitter=0.0)
    return batches(Stream(rules, side, conditioner, config.labels, seed))


def batches(data: Folder | Stream) -> Images:
    def images(start: int, count: int) -> tuple[Tensor, Tensor]:
        batch = data.batch(start, count)
        return batch.images, batch.cond

    return images


class Stored:
    """Images in memory, in a new order each time round.

    They come from an .npz (key `images`, uint8 [n, h, w, 3]), a folder of pictures, or any layout
    of scenes/sources.py, without its conditions. With the view `square` they are cut to it."""

    def __init__(self, path: Path, side: int, seed: int, view: str):
        self.seed = seed
        self.images = picture_stack(picture_readers(path), (side, side), view, path)

    def __call__(self, start: int, count: int) -> tuple[Tensor, None]:
        n = len(self.images)
        chosen = [self.order((start + i) // n)[(start + i) % n] for i in range(count)]
        return self.images[chosen].float() / 127.5 - 1, None

    @lru_cache(maxsize=2)  # noqa: B019 - one object lives as long as its run
    def order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.images))


def picture_stack(
    readers: Sequence[Reader], size: tuple[int, int], view: str, path: Path
) -> Tensor:
    """Pictures from `path`, all of this (width, height): [n, 3, height, width]. Each is read and
    made smaller before the next."""
    if not readers:
        raise InputError(f"{path} holds no images, {WANTED}")
    same = np.stack([sources.resized(read(), size, view) for read in readers])
    return torch.from_numpy(same).permute(0, 3, 1, 2)


def shown_images(config: Config, count: int, given: Path | None, seed: int) -> Tensor:
    """The first images of a run's own data, or of a file or folder in its place, in [-1, 1]."""
    side = config.architecture.resolution
    source = Stored(given, side, seed, config.view) if given is not None else images_of(config)
    return source(0, count)[0]


def picture_readers(path: Path) -> list[Reader]:
    """How the pictures of `path` are read, in the order of the names of their files."""
    if path.is_dir() and sources.is_data(path):
        # Those in shards have no files of their own, and stay in the order of the shard.
        named = sorted(
            sources.items(path), key=lambda i: str(i.picture) if isinstance(i.picture, Path) else ""
        )
        return [partial(sources.read_item, item) for item in named]
    if path.is_dir():
        pictures = (f for f in path.iterdir() if f.suffix.lower() in sources.SUFFIXES)
        # Names that begin with a dot are notes of the system, such as macOS's ._a.png beside a.png.
        return [partial(read_picture, f) for f in sorted(pictures) if not f.name.startswith(".")]
    try:
        images = read_npz(path, "images")["images"]
    except InputError as error:
        kinds = "neither a folder of pictures nor an .npz with `images`"
        raise InputError(f"{path} is {kinds} ({error})") from None
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        found = f"{images.dtype} {list(images.shape)}"
        raise InputError(f"the images of {path} are {found}, not uint8 [n, h, w, 3]")
    return [partial(np.asarray, image) for image in images]


def pixel_constants(config: Config, images: Images) -> tuple[Pixels, float]:
    """The pixel constants and sigma_data, from the first images of the run."""
    starts = track(range(0, MEASURED, AT_ONCE), "measuring the first images")
    first = torch.cat([images(start, AT_ONCE)[0] for start in starts])
    pixels = Pixels.measure(first, fixed=not config.jitter and not config.data)
    if not pixels.scale:
        raise InputError(f"the images of {config.data} are all of one colour: nothing to learn")
    return pixels, float(pixels.encode(first).std())


def examples_of(model: Model, images: Images) -> Make:
    """A global model sees whole images; a local one a patch with and one without a condition."""
    net = model.denoiser.net
    seed = model.config.recipe.seed

    def make(start: int, count: int) -> Examples:
        shown, cond = images(start, count)
        x0 = model.pixels.encode(shown)
        if cond is None or not isinstance(net, LocalUNet):
            return Examples(x0, cond)
        # Positions below zero: the choice of patches must not use the numbers their noise will use.
        chances = [generator(seed, -1 - position) for position in range(start, start + count)]
        image, cell = net.patches.pick(cond, chances)
        local = net.patches.conditions(cond, image, cell)
        return Examples(net.patches.pixels(x0, image, cell), local, net.patches.inside(local))

    return make


def as_x(readers: Sequence[Reader], shape: tuple[int, int, int], path: Path) -> Tensor:
    """Pictures as x in [-1, 1]."""
    channels, height, width = shape
    x = picture_stack(readers, (width, height), "full", path).float() / 127.5 - 1
    return x if channels == 3 else x.mean(1, keepdim=True)
