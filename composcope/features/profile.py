"""From means on disk to the disentanglement profile: cosines of every layer, of parts of the network, of outputs.

ratio(layer) = mean cosine within categories / mean cosine between them                      (version 3, figure 5)
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.features import measure, probe
from composcope.features.probe import Measured
from composcope.features.prompts import Prompts
from composcope.progress import track

NOTHING = "nothing asked"
Matrices = dict[str, Float[np.ndarray, "n n"]]


def short(layer: str) -> str:
    """A layer as rows and figures name it: enc.16x16_block0; up 1.0.2 for block 1, attention 0, transformer 2."""
    plain = layer.removesuffix(".conv_res1").removesuffix(".attn2").removeprefix("denoiser.net.")
    return re.sub(r"attentions\.|transformer_blocks\.", "", re.sub(r"_blocks?\.", " ", plain, count=1))


@dataclass(frozen=True)
class Study:
    """Means on disk: an entry says in which file and under which prefix a concept has its layers.

    categories: of the first entries; those beyond (composites) are in the matrices only.
    """

    folder: Path
    entries: Mapping[str, tuple[str, str]]
    groups: int
    categories: Sequence[str] | None = None
    nothing: str = ""  # prefix of the background's layers

    def cosines(self, key: str) -> Float[Tensor, "one_and_resamples n n"]:
        entries = [(name, prefix + key) for name, prefix in self.entries.values()]
        background = measure.stack(self.folder, [(NOTHING, self.nothing + key)], self.groups)[0]
        return probe.replicates(measure.stack(self.folder, entries, self.groups), background)

    def over_layers(
        self, layers: Sequence[str], levels: Sequence[str], part: Callable[[str], str], outputs: Sequence[str] = ()
    ) -> tuple[list[Measured], Matrices]:
        """Every layer at every noise level; each part, by the mean of its layers' cosines; each output space."""
        found: list[Measured] = []
        matrices: Matrices = {}

        def note(key: str, cosine: Tensor, setting: dict) -> None:
            summary = probe.summary(cosine, self.categories)
            matrices[key] = summary.matrix
            found.extend(told(summary, setting))

        for level in levels:
            parts: dict[str, list[Tensor]] = {}
            for index, layer in enumerate(track(layers, f"cosines, {level} noise")):
                cosine = self.cosines(f"{layer}@{level}")
                parts.setdefault(part(layer), []).append(cosine)
                setting = {"layer": short(layer), "part": part(layer), "level": level, "index": index}
                note(f"{short(layer)}@{level}", cosine, setting)
            for name, several in parts.items():
                setting = {"layer": name, "part": "mean", "level": level}
                note(f"{name}@{level}", torch.stack(several).mean(0), setting)
        for space in outputs:
            note(space, self.cosines(space), {"layer": space, "part": "output"})
        return found, matrices


def told(summary: probe.Similarity, setting: dict) -> Iterator[Measured]:
    for claim in ("between", "within", "ratio", "gap"):
        value = getattr(summary, claim)
        if value is not None:
            yield Measured(claim, setting, *value)


def composites(
    study: Study, cosine: Float[Tensor, "one_and_resamples n n"], asked: Prompts, tokens: bool
) -> list[Measured]:
    """Cosine of each composite with each of its parts, and its mean with the other concepts (figure 7 of version 1).

    tokens: entries of composites are "composite: part", seen at the token of the part; else whole composites.
    """
    order, found = list(study.entries), []
    for composite in asked.composites:
        others = [order.index(c.name) for c in asked.concepts if c.name not in composite.parts]
        for part in composite.parts:
            line = cosine[:, order.index(f"{composite.name}: {part}" if tokens else composite.name)]
            for claim, values in (
                ("composite", line[:, order.index(part)]),
                ("composite_others", line[:, others].mean(1)),
            ):
                setting = {"composite": composite.name, "part": part, "level": "high"}
                found.append(Measured(claim, setting, *probe.interval(values)))
    return found
