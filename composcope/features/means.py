"""Means of activations on the way from noise to image, a file a concept and group of seeds.

    mu_i(layer, level) = mean over seeds of the layer's activation at the x of that noise level,
    asked for concept i

All concepts start from the same noise. A file that is there is not made again, so what was stopped
goes on; it says what it was made from, and is not taken for another's."""

import hashlib
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.diffusion.denoiser import Cond, Denoiser, X
from composcope.diffusion.guidance import Guided
from composcope.diffusion.sample import walk
from composcope.errors import InputError
from composcope.features.capture import Means, Read, capture, output, pooled
from composcope.files import parse_json
from composcope.progress import track
from composcope.results.arrays import MADE_FROM, check_origin
from composcope.tensors import read_about, read_tensor, save_tensors

Stacked = Float[Tensor, "n groups features"]


@dataclass(frozen=True)
class Probe:
    """Which modules to look at and what to read there, kept as `prefix` + name + @ + level."""

    layers: tuple[str, ...]
    read: Read = output
    prefix: str = ""


@dataclass(frozen=True)
class Schedule:
    """The noise levels of a way down (falling, 0 last), and the steps at which to look, by name."""

    sigmas: Float[Tensor, " levels"]
    steps: Mapping[str, int]


@torch.no_grad()
def mean_activations(
    denoiser: Denoiser,
    network: nn.Module,
    probes: Sequence[Probe],
    x: X,
    cond: Cond,
    schedule: Schedule,
    outputs: Mapping[str, Callable[[X], Tensor]],
    grid: int,
    scale: float = 1.0,
) -> dict[str, Tensor]:
    """Means over the batch of every probe at every level, and of the final x in each output space.

    x is unit noise. `scale` guides the way down; what is looked at is the denoiser asked for the
    concept, and nothing else."""
    sums = Means()
    for step in walk(Guided(denoiser, scale), x, cond, schedule.sigmas.to(x), solver="euler"):
        for level, at in schedule.steps.items():
            if at != step.index:
                continue
            with ExitStack() as hooks:
                for probe in probes:
                    add = adder(sums, probe.prefix, level, len(x), grid)
                    hooks.enter_context(capture(network, probe.layers, add, probe.read))
                denoiser(step.x, step.sigma.expand(len(x)), cond)
    for space, decoded in outputs.items():
        sums.add(space, decoded(step.x))
    return sums()


def adder(
    sums: Means, prefix: str, level: str, images: int, grid: int
) -> Callable[[str, Tensor], None]:
    """What a hook does with an activation: pooled, it is added under its name and level."""

    def add(name: str, activation: Tensor) -> None:
        if len(activation) != images:
            raise InputError(
                f"the layer {name} sees {len(activation)} parts of {images} images: the network "
                "works on patches, so its layers have no activation of an image"
            )
        sums.add(f"{prefix}{name}@{level}", pooled(activation, grid))

    return add


def modulated_layers(network: nn.Module) -> tuple[str, ...]:
    """Where the condition has just scaled the channels of an EDM2 block: the input of conv_res1.

    This is the product that section E.4 looks at, after its nonlinearity."""
    return tuple(name for name, _ in network.named_modules() if name.endswith(".conv_res1"))


@dataclass(frozen=True)
class MeansFolder:
    """Files of means, one for each concept and group of seeds, all made from the same thing."""

    folder: Path
    made_from: Mapping[str, Any]

    def path(self, concept: str, group: int) -> Path:
        """Readable and one to one: a slug, a digest of the name, the group."""
        slug = re.sub(r"[^\w+-]+", "_", concept)[:40]
        digest = hashlib.sha256(concept.encode()).hexdigest()[:8]
        return self.folder / f"{slug}-{digest}.{group:03d}.safetensors"

    def make(
        self,
        todo: Mapping[tuple[str, int], Callable[[], Mapping[str, Tensor]]],
        what: str,
        call: Callable[[], object],
        calls: int,
    ) -> None:
        """Make what is not there; say first what it takes, by a timed `call`, `calls` a file."""
        paths = {self.path(*key): make for key, make in todo.items()}
        for path in paths:
            if path.exists():
                self.check(path)
        left = {path: make for path, make in paths.items() if not path.exists()}
        if not left:
            return
        minutes = seconds_of(call) * calls * len(left) / 60
        needs = f"about {minutes:.1f} minutes, {memory():.1f} GiB"
        print(f"{what}: {len(left)} of {len(todo)} to make, {needs}", file=sys.stderr)
        for path, make in track(left.items(), what, len(left)):
            tensors = {name: tensor.float() for name, tensor in make().items()}
            origin = json.dumps(dict(self.made_from), sort_keys=True)
            save_tensors(path, tensors, {MADE_FROM: origin})

    def check(self, path: Path) -> None:
        try:
            origin: dict = parse_json(read_about(path)[MADE_FROM], dict, str(path))
        except (InputError, KeyError) as error:
            reason = f"does not hold means ({error}); remove it to make it again"
            raise InputError(f"{path} {reason}") from None
        check_origin(path, origin, json.loads(json.dumps(dict(self.made_from))))

    def read(self, concept: str, group: int, key: str) -> Tensor:
        """One tensor of a file; the others are not read."""
        path = self.path(concept, group)
        try:
            return read_tensor(path, key)
        except InputError as error:
            raise InputError(f"{error}; remove it to make it again") from None

    def stack(self, entries: Sequence[tuple[str, str]], groups: int) -> Stacked:
        """One layer of many concepts; an entry is a concept and the layer's key in its files."""

        def layer(name: str, key: str) -> Tensor:
            return torch.stack([self.read(name, group, key).flatten() for group in range(groups)])

        return torch.stack([layer(name, key) for name, key in entries])


def seconds_of(call: Callable[[], object]) -> float:
    with torch.no_grad():
        call()  # the first one also sets things up
        began = time.monotonic()
        call()
    return time.monotonic() - began


def memory() -> float:
    """The most this process has held so far, GiB."""
    on_gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return max(on_gpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) / 2**30
