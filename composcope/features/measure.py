"""Are the conditions of a run disentangled inside its network? Figures 5 and 11.

rows = features(load("color"))"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from composcope.diffusion.denoiser import X
from composcope.diffusion.sample import noise, noise_levels
from composcope.errors import InputError
from composcope.features.capture import first_input
from composcope.features.means import (
    MeansFolder,
    Probe,
    Schedule,
    mean_activations,
    modulated_layers,
)
from composcope.features.profile import NOTHING, ConceptMeans
from composcope.files import locked
from composcope.locality.contract import condition_names
from composcope.results import Row

GROUPS = 10  # of samples, for the intervals
STEPS = 15
LOOKED_AT = {"high": 3, "mid": 7, "low": 11}  # of 15 steps: sigma 22, 2.5 and 0.10
# the paper's feature space: encoder layers of the two finest sizes, 128 and 64 of 128
SPACE_SIZES = 2


def features(
    model: Any,
    num: int = 100,
    seed: int = 0,
    keep: Path | None = None,
    groups: int = GROUPS,
    device: str = "cpu",
) -> list[Row]:
    """Cosines between the mean activations of single conditions (equation 3), layer by layer.

    model: a trained run, whose conditioner chooses the conditions.
    num: samples of each condition, in `groups` that are resampled for the intervals.
    keep: a folder for the means of each condition and group; those that are there are not made
    again."""
    if model.conditioner is None:
        raise InputError(
            "features: nothing is asked of this model; there are no concepts to compare"
        )
    layers = modulated_layers(model) if isinstance(model, nn.Module) else ()
    if not layers:
        raise InputError(
            "features: this model has no layers of its own that its condition modulates"
        )
    if model.conditioner.most < 2:
        noun = model.conditioner.noun
        raise InputError(f"features: this model knows a single {noun}; two at least are compared")
    if groups < 2 or num < groups:
        needed = "2 groups at least, and a sample in each"
        raise InputError(f"features: {num} samples in {groups} groups; {needed}")
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            return features(model, num, seed, Path(folder), groups, device)

    # Means of every condition alone, and of nothing asked.
    size = num // groups
    about = {**model.about, "seed": seed}
    conditioner = model.conditioner
    conditions = sorted(conditioner.ask(conditioner.most, 1, seed)[0])
    names = condition_names(conditions)
    asked = {name: (condition,) for name, condition in zip(names, conditions, strict=True)}
    schedule = Schedule(noise_levels(STEPS), LOOKED_AT)
    means = MeansFolder(keep, {**about, "num": size * groups, "groups": groups})

    def make(condition_set: tuple, group: int) -> Mapping[str, Tensor]:
        x = noise(range(seed + group * size, seed + (group + 1) * size), model.shape).to(device)
        cond = conditioner([condition_set] * size).to(device)
        looking = [Probe(layers, first_input)], x, cond, schedule, {"pixel": identity}
        return mean_activations(model, model, *looking, grid=model.shape[1])

    every = product({NOTHING: (), **asked}.items(), range(groups))
    todo = {(name, group): partial(make, some, group) for (name, some), group in every}
    trial = (torch.zeros(size, *model.shape, device=device), torch.ones(size, device=device), None)
    what = f"{about['run']}: conditions and groups"
    with locked(keep):
        means.make(todo, what, lambda: model(*trial), STEPS + len(LOOKED_AT))

    # Cosines of every layer, and of the paper's feature space.
    entries = {name: (name, "") for name in asked}
    concepts = ConceptMeans(means, entries, groups, size * groups, about=about)
    rows = concepts.over_layers(layers, list(LOOKED_AT), coder, ["pixel"], keep)
    space = early_layers(means, layers)
    return rows + concepts.feature_space(space, list(LOOKED_AT), "encoder")


@contextmanager
def no_denormals() -> Iterator[None]:
    """Attention to padding is so close to nothing that it slows a processor five times."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def identity(x: X) -> X:
    return x


def coder(layer: str) -> str:
    """The part of a U-Net that a module is in."""
    return "encoder" if "enc" in layer.split(".") else "decoder"


def early_layers(means: MeansFolder, layers: tuple[str, ...]) -> list[str]:
    """Layers of the encoder with the two finest sizes of its maps (section E.4)."""
    level = next(iter(LOOKED_AT))
    encoder = [layer for layer in layers if coder(layer) == "encoder"]
    sizes = {layer: means.read(NOTHING, 0, f"{layer}@{level}").shape[-1] for layer in encoder}
    finest = sorted(set(sizes.values()), reverse=True)[:SPACE_SIZES]
    return [layer for layer in encoder if sizes[layer] in finest]
