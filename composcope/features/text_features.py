"""Are concepts disentangled inside a text-to-image model? Figures 7 and 13; version 3, Figure 5.

Hidden states after every transformer block, and the attention that places pay to the concept's own
word."""

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from composcope.diffusion.denoiser import X
from composcope.features import sdxl
from composcope.features.capture import pooled
from composcope.features.means import MeansFolder, Probe, Schedule, mean_activations
from composcope.features.measure import identity
from composcope.features.profile import NOTHING, ConceptMeans
from composcope.features.prompts import Prompts, TextSettings
from composcope.files import locked
from composcope.results import Row

SPACE_LAYERS = 5  # the paper's feature space: the first five layers of the mid block (section G)
PICTURE_SIDE = 64  # pixels of the final images are compared at this size


def text_features(
    model: sdxl.SDXL, asked: Prompts, how: TextSettings, seed: int, keep: Path, run: str
) -> list[Row]:
    """Cosines between the mean activations of prompts (equation 3), at every transformer block.

    keep: a folder for the means of each prompt and seed; those that are there are not made again.
    """
    # Means of every prompt, and of nothing asked.
    blocks = model.transformer_blocks
    attentions = tuple(f"{block}.attn2" for block in blocks)
    steps = how.steps
    schedule = Schedule(model.levels(steps), {"high": 0, "mid": steps // 2, "low": steps - 1})
    texts = prompts_of(asked)
    outputs = {"latent": identity, "pixel": partial(picture_tensor, model)}

    def make(name: str, one: int) -> Mapping[str, Tensor]:
        prompt, tokens = texts[name]
        probes = [Probe(blocks)]
        for part, word in tokens.items():
            read = sdxl.attention_to(model.token(prompt, word))
            probes.append(Probe(attentions, read, f"attn/{part}/"))
        x = model.start([one], steps) / schedule.sigmas[0].to(model.device)
        looking = probes, x, model.encode([prompt]), schedule, outputs
        return mean_activations(model, model.unet, *looking, how.grid, how.guidance)

    setting = f"guidance {how.guidance:g}, {steps} steps, {how.grid} places a side"
    about: dict[str, Any] = {"run": run, "seed": seed, "setting": setting}
    prompts = {name: text for name, (text, _) in texts.items()}
    means = MeansFolder(keep, {**about, "prompts": prompts})
    every = product(texts, range(how.seeds))
    todo = {(name, one): partial(make, name, seed + one) for name, one in every}
    calls = steps * (1 if how.guidance == 1 else 2) + len(schedule.steps)
    with locked(keep):
        means.make(todo, "prompts and seeds", partial(trial, model), calls)

    # Cosines of hidden states and of attention maps.
    categories = [concept.category for concept in asked.concepts]
    groups: dict[str, Any] = {"groups": how.seeds, "num": how.seeds, "categories": categories}
    states, maps = {**about, "maps": "hidden"}, {**about, "maps": "attention"}
    whole = {name: (name, "") for name in texts if name != NOTHING}
    hidden = ConceptMeans(means, whole, **groups, about=states)
    tokens = token_entries(asked)
    attention = ConceptMeans(means, tokens, **groups, background="attn//", about=maps)
    levels = list(schedule.steps)
    rows = []
    both = (hidden, blocks, ("latent", "pixel")), (attention, attentions, ())
    for concepts, layers, spaces in both:
        folder = keep / concepts.about["maps"]
        rows += concepts.over_layers(layers, levels, sdxl.part_of, spaces, folder)
        mid = [layer for layer in layers if sdxl.part_of(layer) == "mid"]
        rows += concepts.feature_space(mid[:SPACE_LAYERS], levels, "mid")
        cosine = concepts.mean_cosines(mid, "high")
        rows += concepts.composites(cosine, asked, tokens=concepts is attention)
    return rows


def prompts_of(asked: Prompts) -> dict[str, tuple[str, dict[str, str]]]:
    """By name: the prompt, and the words whose attention is looked at, by their concepts."""
    word = {concept.name: concept.word for concept in asked.concepts}
    texts = {NOTHING: ("", {"": ""})}
    for concept in asked.concepts:
        texts[concept.name] = (concept.prompt, {concept.name: concept.word})
    for composite in asked.composites:
        texts[composite.name] = (composite.prompt, {part: word[part] for part in composite.parts})
    return texts


def token_entries(asked: Prompts) -> dict[str, tuple[str, str]]:
    """Where the attention maps are: of each concept, and of each part of a composite."""
    entries = {concept.name: (concept.name, f"attn/{concept.name}/") for concept in asked.concepts}
    for composite in asked.composites:
        for part in composite.parts:
            entries[f"{composite.name}: {part}"] = (composite.name, f"attn/{part}/")
    return entries


def trial(model: sdxl.SDXL) -> Tensor:
    return model(model.start([0], 3), torch.ones(1, device=model.device), None)


def picture_tensor(model: sdxl.SDXL, x: X) -> Tensor:
    """Pictures of latents, in [-1, 1]."""
    pictures = torch.from_numpy(model.decode(x)).permute(0, 3, 1, 2) / 127.5 - 1
    return pooled(pictures, PICTURE_SIDE)
