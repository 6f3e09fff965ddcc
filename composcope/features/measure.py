"""Means of activations along the way from noise to image, one file a concept and group of seeds, made once.

    mu_i(layer, level) = mean over seeds of the layer's activation at the x of that noise level, asked for concept i

All concepts start from the same noise. A file that is there is not made again, so a stopped study goes on.
"""

import hashlib
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from composcope.diffusion.denoiser import Cond, Denoiser, Sigmas, X
from composcope.errors import InputError
from composcope.features.capture import Means, Read, capture, output, pooled
from composcope.files import whole
from composcope.progress import track


@dataclass(frozen=True)
class Probe:
    """Which modules to look at and what to read there; what is read is kept as `prefix` + name + @ + level."""

    layers: tuple[str, ...]
    read: Read = output
    prefix: str = ""


@dataclass(frozen=True)
class Levels:
    """The noise levels of a way down (falling, 0 last), and the steps at which to look, by name."""

    sigmas: Float[Tensor, " levels"]
    steps: Mapping[str, int]


@dataclass(frozen=True)
class Guided:
    """Classifier-free guidance, D_b + scale (D_c - D_b), with D_b the denoiser asked for nothing; it is a Denoiser."""

    denoiser: Denoiser
    scale: float

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        asked = self.denoiser(x, sigma, cond)
        if self.scale == 1:
            return asked
        nothing = self.denoiser(x, sigma, None)
        return nothing + self.scale * (asked - nothing)


def walk(denoiser: Denoiser, x: X, sigmas: Float[Tensor, " levels"], cond: Cond) -> Iterator[tuple[Tensor, X]]:
    """(sigma, x) at every level from a noisy x down, by Euler steps of the probability flow (EDM, equation 1)."""
    for sigma, lower in pairwise(sigmas.to(x)):
        yield sigma, x
        x = x + (lower - sigma) * (x - denoiser(x, sigma.expand(len(x)), cond)) / sigma
    yield sigmas[-1].to(x), x


@torch.no_grad()
def means(
    denoiser: Denoiser,
    network: nn.Module,
    probes: Sequence[Probe],
    x: X,
    cond: Cond,
    levels: Levels,
    outputs: Mapping[str, Callable[[X], X]],
    grid: int,
    scale: float = 1.0,
) -> dict[str, Tensor]:
    """Means over the batch of every probe at every named level, and of the final x in each output space.

    `scale` guides the way down; what is looked at is the denoiser asked for the concept, and nothing else.
    """
    kept = Means()

    def keep(prefix: str, level: str) -> Callable[[str, Tensor], None]:
        return lambda name, found: kept.add(f"{prefix}{name}@{level}", pooled(found, grid))

    for step, (sigma, x) in enumerate(walk(Guided(denoiser, scale), x, levels.sigmas, cond)):  # noqa: B020
        for level in (name for name, at in levels.steps.items() if at == step):
            with ExitStack() as hooks:
                for probe in probes:
                    hooks.enter_context(capture(network, probe.layers, keep(probe.prefix, level), probe.read))
                denoiser(x, sigma.expand(len(x)), cond)
    for space, of in outputs.items():
        kept.add(space, of(x))
    return kept()


def file_of(folder: Path, concept: str, group: int) -> Path:
    """Readable and one to one: a slug, a digest of the name, the group."""
    slug, digest = re.sub(r"[^\w+-]+", "_", concept)[:40], hashlib.sha256(concept.encode()).hexdigest()[:8]
    return folder / f"{slug}-{digest}.{group:03d}.safetensors"


def once(path: Path, make: Callable[[], Mapping[str, Tensor]]) -> Path:
    """Make the tensors of a file unless it is there."""
    if not path.exists():
        tensors = {name: tensor.detach().cpu().float().contiguous() for name, tensor in make().items()}
        with whole(path) as partial:
            save_file(tensors, partial)
    return path


def make_all(
    folder: Path, todo: Mapping[tuple[str, int], Callable], what: str, call: Callable[[], object], calls: int
) -> None:
    """Say what it will take, from one timed `call` of which each file needs `calls`; then make what is not there."""
    paths = {file_of(folder, *key): make for key, make in todo.items()}
    left = {path: make for path, make in paths.items() if not path.exists()}
    if not left:
        return
    with torch.no_grad():
        call()  # the first one also sets things up
        began = time.monotonic()
        call()
    minutes = (time.monotonic() - began) * calls * len(left) / 60
    on_gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    memory = max(on_gpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) / 2**30
    print(f"{what}: {len(left)} of {len(todo)} to make, about {minutes:.1f} minutes, {memory:.1f} GiB", file=sys.stderr)
    for path, make in track(left.items(), what, len(left)):
        once(path, make)


def read(path: Path, key: str) -> Tensor:
    """One tensor of a file; the others are not read."""
    try:
        with safe_open(path, "pt") as file:
            return file.get_tensor(key)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} does not hold {key} ({error}); delete it and run the same command again") from None


def stack(folder: Path, entries: Sequence[tuple[str, str]], groups: int) -> Float[Tensor, "n groups features"]:
    """One layer of many concepts; an entry is a concept and the key under which its files have the layer."""
    rows = [[read(file_of(folder, name, group), key).flatten() for group in range(groups)] for name, key in entries]
    return torch.stack([torch.stack(row) for row in rows])


def modulated_layers(network: nn.Module) -> tuple[str, ...]:
    """Where the embedding of the condition has just scaled the channels of an EDM2 block: the input of conv_res1.

    This is the product that section E.4 looks at, after its nonlinearity.
    """
    return tuple(name for name, _ in network.named_modules() if name.endswith(".conv_res1"))
