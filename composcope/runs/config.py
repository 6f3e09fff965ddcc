"""What is trained: an experiment of the paper (numbered as in version 3) at a preset's scale.

The presets are one table, the expected result above the row."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import tyro

from composcope.diffusion.distillation import Walks
from composcope.diffusion.recipe import Recipe
from composcope.errors import InputError, check_name
from composcope.files import content, parse_json, write_text
from composcope.options import Int, open_arg

# Settings that may be left open, as the command line calls what may be given for them.
Folder: TypeAlias = Annotated[str | None, open_arg("PATH")]
Name: TypeAlias = Annotated[str | None, open_arg("NAME")]

# The most that makes sense of each: what is beyond it is a slip, or a file that is not ours.
MOST = dict(resolution=4096, grid_size=256, width=8192, blocks=64, head=8192, fold=64, emb=1024)


@dataclass(frozen=True)
class Architecture:
    """The size of the images and of the network."""

    resolution: int  # pixels a side of an image
    grid_size: int  # cells a side of the location grid
    width: int  # channels at the highest resolution
    mult: tuple[int, ...]  # channels of each level, in widths
    blocks: int  # residual blocks of each level
    attention: tuple[int, ...]  # sides of the (folded) image at which blocks attend
    head: int = 64  # channels of an attention head
    fold: int = 1  # blocks of fold x fold pixels are channels to the network
    radius: int = 2  # k of a local net's patches, (2k + 1) cells a side (section E.3)
    waves: int = 0  # products of so many waves along each side as input planes: where a pixel is
    emb: Int = None  # channels of the embedding, in widths; if not given, the widest level's
    smooth: bool = False  # labels that mean alike things begin with alike embeddings
    bilinear: bool = False  # gains are linear in the labels (see UNet)
    gate: int = 0  # the network also says where a pixel is flat ground (see Precond)

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            if (value := getattr(self, name)) is not None and not 1 <= value <= most:
                raise InputError(f"{name} = {value}: a network has from 1 to {most}")
        if not 1 <= len(self.mult) <= 10 or not all(1 <= level <= 64 for level in self.mult):
            raise InputError(
                f"mult = {self.mult}: a network has 1 to 10 levels, each 1 to 64 times as wide"
            )
        if self.gate < 0 or (self.gate and self.gate % 2 == 0):
            raise InputError(f"gate = {self.gate}: an odd number of pixels a side, or 0 for none")
        if not 0 <= self.radius <= 4 * self.grid_size:
            raise InputError(
                f"radius = {self.radius}: patches reach from 0 to 4 times {self.grid_size} cells"
            )


USUAL_OBJECTS = (1, 3)  # the paper's: fewest and most of an image


@dataclass(frozen=True)
class Teacher:
    """What a run was distilled from: another run with an intervention, at states of walks."""

    run: str  # the name of its folder
    weights: str  # fingerprint
    intervention: str
    radius: float | None  # of the intervention, in image sides, where it has one
    walks: Walks


@dataclass(frozen=True)
class Config:
    """All that a run depends on. Two runs of one Config end with the same weights."""

    conditioner: str  # grid, list, set, ..., none (nothing asked), or FILE.py:Class
    labels: Literal["all", "one", "random", "all_but_one"]  # which objects of an image are labelled
    net: Literal["global", "local"]  # the whole image at once, or cell by cell from patches
    architecture: Architecture
    recipe: Recipe
    objects: tuple[int, int] = USUAL_OBJECTS  # fewest and most of a training image
    jitter: bool = False  # whether camera and lamps move from scene to scene
    view: Literal["full", "square"] = "full"  # what of the official frame the images show
    data: Folder = None  # images on disk in place of scenes drawn here
    field: Name = None  # of their metadata that holds the conditions; if not given, the only one
    words: tuple[str, ...] = ()  # of a vocabulary, as found in the metadata
    threads: Int = None  # of this process; if not given, all there are
    init: Folder = None  # the run whose weights this one begins with
    teacher: Annotated[Teacher | None, tyro.conf.Suppress] = None  # of a run that was distilled

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= 4096:
            raise InputError(f"threads = {self.threads}: a training has from 1 to 4096")
        if not 0 <= self.objects[0] <= self.objects[1] <= 100:
            raise InputError(f"objects = {self.objects}: objects are a range in 0 to 100")

    def save(self, path: Path) -> None:
        write_text(path, self.json() + "\n")

    def json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def load(path: Path) -> "Config":
        return parse_json(content(path), Config, str(path))


WAVES: dict[str, Any] = dict(waves=12, emb=6, gate=3, bilinear=True)
SMOOTH = WAVES | dict(smooth=True)
GPU: dict[str, Any] = dict(bf16=True, channels_last=True, compile=True)  # not run on a GPU here
GPU |= dict(log_every=50, checkpoint_every=1000, sheet_every=5000, average_every=2000)
TEST: dict[str, Any] = dict(log_every=5, checkpoint_every=10, sheet_every=50, average_every=10)
CPU: dict[str, Any] = dict(log_every=100, checkpoint_every=500, sheet_every=2000)
CPU |= dict(average_every=1000, bf16=True, channels_last=True, optimizer="muon")
CELLS = CPU | dict(sheet_every=6000)  # a sheet cell by cell takes as long as 1,500 steps

# fmt: off
#         conditioner labels net         and whether the paper's generalizes in length
EXPERIMENTS = {
    "exp1":   ("grid",  "all", "global"),  # to 7 objects, trained on 1-3
    "exp2":   ("grid",  "one", "global"),  # does not
    "exp3":   ("list",  "all", "global"),  # does not
    "exp3s":  ("set",   "all", "global"),  # the list with one map for all slots: not in the paper
    "exp2l":  ("grid",  "one", "local"),   # the intervention on exp2: does
    "exp3l":  ("list",  "all", "local"),   # the intervention on exp3: does
    "color":  ("color", "all", "global"),  # partly does
    "images": ("none",  "all", "global"),  # any images, nothing asked (CIFAR-10 of figure 12)
}
ARCHITECTURES = {  # (preset, net):  px grid width mult      blocks attention head fold radius
    ("smoke",  "global"): Architecture( 16,  4,   8, (1, 2),       1, (),       16, 2, 1),
    ("smoke",  "local"):  Architecture( 16,  4,   8, (1, 2),       1, (),       16, 2, 1),
    ("laptop", "global"): Architecture( 64, 16,  64, (1, 1),       1, (8,),     64, 4, 2, **SMOOTH),
    ("laptop", "local"):  Architecture( 64, 16,  64, (1,),         2, (),       64, 4, 2, **WAVES),
    ("small",  "global"): Architecture( 64, 16,  96, (1, 2, 3),    2, (16, 8),  64, 1, 2),
    ("small",  "local"):  Architecture( 64, 16,  96, (1, 2, 3),    2, (10, 5),  64, 1, 2),
    # EDM2's XS: 124 M weights
    ("paper",  "global"): Architecture(128, 16, 128, (1, 2, 3, 4), 3, (32, 16), 64, 1, 2),
    ("paper",  "local"):  Architecture(128, 16, 128, (1, 2, 3, 4), 3, (10, 5),  64, 1, 2),
}
# The paper's recipe has the rate of EDM2's XS (0.012) and the noise of EDM2's pixel models: ln
# sigma of mean -0.8 and deviation 1.6 at sigma_data 0.5; that of our jittered scenes is 0.48.
RECIPES = {  # (preset, net):     images  batch    lr    warmup    decay  P_mean P_std
    # expected: blobs, for tests
    ("smoke",  "global"): Recipe(    1_600,   16,   8e-3,      160,    1_600, -0.3, 1.3, **TEST),
    ("smoke",  "local"):  Recipe(    1_600,   16,   8e-3,      160,    1_600, -0.3, 1.3, **TEST),
    ("laptop", "global"): Recipe(   64_000,   16,   1e-2,    1_600,    8_000,  0.5, 1.4, **CPU),
    ("laptop", "local"):  Recipe(   64_000,   16,   1e-2,    1_600,    8_000,  0.5, 1.4, **CELLS),
    # exp1 to K = 7, exp2l to K = 9
    ("small",  "global"): Recipe( 16 << 20,  256,   1e-2,  1 << 20,  8 << 20,  0.0, 1.6, **GPU),
    ("small",  "local"):  Recipe( 16 << 20,  256,   1e-2,  1 << 20,  8 << 20,  0.0, 1.6, **GPU),
    # exp1 to 7, exp2l to 9 (v3)
    ("paper",  "global"): Recipe(128 << 20, 2048, 1.2e-2, 10 << 20, 70 << 20, -0.8, 1.6, **GPU),
    ("paper",  "local"):  Recipe(128 << 20, 2048, 1.2e-2, 10 << 20, 70 << 20, -0.8, 1.6, **GPU),
}
# fmt: on
JITTERED = ("small", "paper")  # camera and lamps move from scene to scene, as in CLEVR
# Elsewhere the full frame, squeezed as in the paper.
VIEW: dict[str, Literal["full", "square"]] = {"laptop": "square"}
# Two runs side by side make better use of two cores than one run on both.
THREADS = {"smoke": 1, "laptop": 1}


def configure(
    experiment: str, preset: str = "laptop", changes: Mapping[str, Any] | None = None
) -> Config:
    """The Config of an experiment at a preset's scale.

    changes: other values of fields of Config, Architecture or Recipe."""
    check_name("experiment", experiment, EXPERIMENTS)
    check_name("preset", preset, list(dict.fromkeys(name for name, _ in RECIPES)))
    changes = changes or {}
    names = "conditioner", "labels", "net"
    parts: dict[str, Any] = dict(zip(names, EXPERIMENTS[experiment], strict=True))
    scale = preset, changes.get("net", parts["net"])
    config = Config(
        **parts,
        architecture=ARCHITECTURES[scale],
        recipe=RECIPES[scale],
        jitter=preset in JITTERED,
        view=VIEW.get(preset, "full"),
        threads=THREADS.get(preset),
    )
    for name, value in changes.items():
        config = changed(config, name, value)
    return config


def changed(config: Config, name: str, value: Any) -> Config:
    """`config` with one field changed, wherever that field is."""
    for part in ("architecture", "recipe"):
        inner = getattr(config, part)
        if name in {field.name for field in fields(inner)}:
            return replace(config, **{part: replace(inner, **{name: value})})
    if name not in {field.name for field in fields(config)}:
        raise InputError(f"a run has no setting {name!r}")
    return replace(config, **{name: value})


def difference(a: Config, b: Config) -> str | None:
    """The first setting in which two configurations differ, with both values, or None."""
    others = flat(b)
    for name, value in flat(a).items():
        if value != others[name]:
            return f"{name} = {value} there, {others[name]} asked for"
    return None


def flat(config: Config) -> dict[str, Any]:
    """All settings by name, those of the network and the training among them."""
    settings = asdict(config)
    network = settings.pop("architecture")
    training = settings.pop("recipe")
    return settings | network | training
