"""What was trained: a Denoiser with all that is needed to use it, from its run folder.

    model(x, sigma, cond) -> x0
    model.conditioner(condition_sets) -> cond
    model.pixels: images <-> x

Loading runs no code."""

import hashlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from composcope.diffusion.denoiser import Cond, Precond, Sigmas, X
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import usable
from composcope.diffusion.train import SNAPSHOTS
from composcope.errors import InputError, check_name, told_at
from composcope.files import SHIPPED
from composcope.nets.layers import normalize
from composcope.nets.local_unet import LocalUNet, Patches
from composcope.nets.unet import UncertaintyHead, UNet
from composcope.runs.config import Config
from composcope.scenes.condition import CONDITIONERS, add_outside, conditioner_named
from composcope.scenes.parts import SumOfParts
from composcope.tensors import first_line, read_tensors


def conditioner_of(config: Config) -> SumOfParts | None:
    """The conditioner of a run; None when nothing is asked of the images."""
    a = config.architecture
    made = conditioner_named(config.conditioner, a.grid_size, config.words)
    return made.fitted(a.waves) if made else None


class Model(nn.Module):
    """The Denoiser of a run; the pixel constants are buffers."""

    def __init__(
        self,
        config: Config,
        pixels: Pixels,
        sigma_data: float = 0.5,
        conditioner: SumOfParts | None = None,
    ):
        super().__init__()
        self.config = config
        self.conditioner = conditioner or conditioner_of(config)
        self.pixels = pixels
        self.name = "model"  # its folder's, when it is loaded
        self.snapshot = "final"
        self.view = config.view  # what of the official frame its pictures show
        self.resolution = config.architecture.resolution
        self.shape = (3, self.resolution, self.resolution)
        # The first weights are a function of the seed, whatever was drawn before.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.recipe.seed)
            net = network(config, self.conditioner)
            if config.architecture.smooth and isinstance(net, UNet):
                smooth_labels(net, self.conditioner, config.architecture.waves or 8)
            self.denoiser = Precond(net, UncertaintyHead(), sigma_data, config.architecture.gate)

    def forward(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        if not isinstance(x, Tensor) or x.ndim != 4 or x.shape[1] != self.shape[0]:
            given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"x is {given}, not a tensor [batch, {self.shape[0]}, height, width]")
        if not isinstance(sigma, Tensor) or sigma.shape != x.shape[:1]:
            raise InputError(
                f"sigma is a tensor of {len(x)} noise levels, one an image, not {repr(sigma)[:60]}"
            )
        if cond is not None and not isinstance(cond, Tensor):
            raise InputError("cond is a tensor, such as model.conditioner(condition_sets) makes")
        if cond is not None and len(cond) != len(x):
            raise InputError(f"cond has {len(cond)} rows for {len(x)} images; give one an image")
        own = next(self.parameters()).dtype
        asked = None if cond is None else cond.to(own)
        return self.denoiser(x.to(own), sigma.to(own), asked).to(x.dtype)

    @property
    def about(self) -> dict[str, Any]:
        """The coordinates under which measurements of this model are kept."""
        share = SNAPSHOTS[self.snapshot]
        return {
            "run": self.name,
            "snapshot": self.snapshot,
            "images": math.ceil(share * self.config.recipe.steps) * self.config.recipe.batch,
            "weights": self.fingerprint,
            "trained": self.config.objects[1],
            "labels": self.config.labels,
        }

    def parse(self, asked: str) -> tuple:
        """A condition set as on a command line; InputError for what this model cannot be asked."""
        if self.conditioner is None:
            if asked:
                raise InputError(f"--asked {asked!r}: {self.name} takes no conditions")
            return ()
        with told_at("--asked"):
            return self.conditioner.parse(asked)

    def decode(self, x: X) -> UInt8[np.ndarray, "batch height width 3"]:
        each = self.pixels.centre.shape[-1]  # one for all pixels, or as many as an image is wide
        if each not in (1, x.shape[-1]):
            pixels = f"{x.shape[-2]} x {x.shape[-1]} pixels; {self.name} draws {each} x {each}"
            raise InputError(f"these images have {pixels}")
        return self.pixels.decode(x)

    @property
    def fingerprint(self) -> str:
        """Eight characters that change with the weights, to tell measurements of others apart."""
        digest = hashlib.sha256()
        for name, value in self.state_dict().items():
            digest.update(name.encode() + value.cpu().numpy().tobytes())
        return digest.hexdigest()[:8]


def smooth_labels(net: UNet, conditioner: SumOfParts | None, waves: int) -> None:
    """First label weights that are alike for features that mean alike things.

    A cell of the grid holds an object in one image of a hundred; with weights of its own it learns
    from these alone."""
    likeness = conditioner.likeness(waves) if conditioner else None
    if likeness is None or net.emb_label is None:
        return
    outputs = net.emb_label.weight.shape[0]
    maps = torch.randn(outputs, likeness.shape[1])
    with torch.no_grad():
        net.emb_label.weight.copy_(normalize(maps @ torch.from_numpy(likeness).float().T))


def network(config: Config, conditioner: SumOfParts | None) -> nn.Module:
    """The U-Net on whole images, or on the patches of a local model."""
    a = config.architecture
    patches = None
    if config.net == "local":
        cut = conditioner.cut if conditioner else None
        if cut is None:
            named = f"{config.conditioner!r} has none that can be cut into patches"
            raise InputError(f"a patch-local net needs locations, and {named}")
        patches = Patches(a.resolution, a.grid_size, a.radius, **cut)
    features = conditioner.features if conditioner else 0
    unet = UNet(
        resolution=patches.side if patches else a.resolution,
        features=patches.features if patches else features,
        model_channels=a.width,
        channel_mult=a.mult,
        channel_mult_emb=a.emb,
        num_blocks=a.blocks,
        attn_resolutions=a.attention,
        channels_per_head=a.head,
        # a guard of low precision; in float32 it only costs time
        clip_act=256 if config.recipe.bf16 else None,
        fold=a.fold,
        waves=a.waves,
        gate=a.gate,
        bilinear=a.bilinear,
        slots=conditioner.entries if conditioner else 1,
    )
    return LocalUNet(unet, patches) if patches else unet


def load(
    run: str | Path,
    snapshot: str = "final",
    device: str = "cpu",
    conditioner: str | type[SumOfParts] | None = None,
) -> Model:
    """A trained model: one that ships, by its name, or a run of your own, by its folder.

    snapshot: "first", "early", "middle" or "final" weights.
    conditioner: of a run that was trained with one from outside: its class, or "FILE.py:Class" or
        "package.module:Class", which is imported. Nothing is imported because a file names it."""
    folder, device = run_folder(run), usable(device)
    path = weights_path(folder, snapshot)
    if not path.exists() and folder.parent == SHIPPED:
        raise InputError(f"{run} as it ships has no {snapshot} snapshot, only its final weights")
    if not path.exists():
        raise InputError(
            f"{folder} has no {path.name}: the run has not come so far; "
            "train it on with the same command"
        )
    config = Config.load(folder / "config.json")
    own = named_conditioner(conditioner, config)
    tensors = read_tensors(path, finite=True)
    try:
        model = restored(config, tensors, own).to(device)
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        reason = first_line(error)
        raise InputError(f"{path} does not hold the weights of this run ({reason})") from None
    model.name = folder.resolve().name
    model.snapshot = snapshot
    return model


def own_device() -> str:
    """The GPU of this process among those that torchrun started here, or the CPU."""
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"


def weights_path(folder: Path, snapshot: str) -> Path:
    check_name("snapshot", snapshot, SNAPSHOTS)
    name = "model" if snapshot == "final" else f"snapshots/{snapshot}"
    return folder / f"{name}.safetensors"


def named_conditioner(given: str | type[SumOfParts] | None, config: Config) -> SumOfParts | None:
    """The conditioner that a caller has named, if it is that of the run, or else the run's own.

    Its module may have moved since: the name of the class must be the same."""
    if given is None:
        return conditioner_of(config)
    name = given if isinstance(given, str) else given.__name__
    if isinstance(given, str):
        add_outside(given)
    if name.rpartition(":")[2] != config.conditioner.rpartition(":")[2]:
        raise InputError(f"the conditioner of this run is {config.conditioner}, not {name}")
    made = CONDITIONERS[given] if isinstance(given, str) else given.made
    if ":" in config.conditioner:
        CONDITIONERS[config.conditioner] = made  # for what is made from the configuration alone
    return made(config.architecture.grid_size).fitted(config.architecture.waves)


def restored(
    config: Config, tensors: Mapping[str, Tensor], conditioner: SumOfParts | None = None
) -> Model:
    # Shipped models are kept in half precision.
    full = {name: tensor.float() for name, tensor in tensors.items()}
    pixels = Pixels(full["pixels.centre"], float(full["pixels.scale"]))
    model = Model(config, pixels, conditioner=conditioner)
    model.load_state_dict(full)
    return model.eval().requires_grad_(False)


def run_folder(run: str | Path) -> Path:
    """The folder of a run: a path, or the name of a shipped model."""
    if not isinstance(run, str | Path):
        raise InputError(f"a run is a folder or the name of a model that ships, not {run!r}")
    for folder in (Path(run), SHIPPED / str(run)):
        if (folder / "config.json").is_file():
            return folder
    if "://" in str(run):
        advice = "a run is loaded from a folder on this machine: fetch it first"
        raise InputError(f"{run} is an address; {advice}")
    names = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
    known = ", ".join(names) or "(none shipped)"
    raise InputError(f"there is no run {str(run)!r}; it is a run folder or one of {known}")
