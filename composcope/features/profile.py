"""From means on disk to the disentanglement profile: cosines of layers, of parts, of outputs.

ratio(layer) = mean cosine within categories / mean cosine between them     (version 3, figure 5)"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.features import probe
from composcope.features.means import MeansFolder
from composcope.features.prompts import Prompts
from composcope.progress import track
from composcope.results import Row, row, write_arrays
from composcope.results.estimate import estimate

NOTHING = "nothing asked"
MATRICES = "matrices.npz"  # what the cosine matrices are drawn from


def short_layer(layer: str) -> str:
    """As rows name it: enc.16x16_block0; up 1.0.2 is block 1, attention 0, transformer 2."""
    plain = layer.removesuffix(".conv_res1").removesuffix(".attn2").removeprefix("denoiser.net.")
    block = re.sub(r"_blocks?\.", " ", plain, count=1)
    return re.sub(r"attentions\.|transformer_blocks\.", "", block)


@dataclass(frozen=True)
class ConceptMeans:
    """Concepts whose means are on disk, and the coordinates of what is measured of them.

    entries: by name, the file and the prefix under which a concept has its layers.
    categories: of the first entries; those beyond (composites) are in the matrices only.
    background: the prefix of the layers when nothing is asked."""

    means: MeansFolder
    entries: Mapping[str, tuple[str, str]]
    groups: int
    num: int
    categories: Sequence[str] | None = None
    background: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def cosines(self, key: str) -> probe.Cosines:
        entries = [(name, prefix + key) for name, prefix in self.entries.values()]
        background = self.means.stack([(NOTHING, self.background + key)], self.groups)[0]
        return probe.replicates(self.means.stack(entries, self.groups), background)

    def mean_cosines(self, layers: Sequence[str], level: str) -> probe.Cosines:
        """The mean of several layers' cosines, as the paper's "feature-space" is (section E.4)."""
        return torch.stack([self.cosines(f"{layer}@{level}") for layer in layers]).mean(0)

    def over_layers(
        self,
        layers: Sequence[str],
        levels: Sequence[str],
        part: Callable[[str], str],
        outputs: Sequence[str],
        folder: Path,
    ) -> list[Row]:
        """Every layer at every noise level; each part, by its layers' mean; each output space.

        The matrices go into the folder by "layer@level", with the concepts in their order."""
        rows: list[Row] = []
        matrices = {"concepts": np.array(list(self.entries), dtype=str)}

        def add(key: str, cosine: Tensor, **where: Any) -> None:
            summary = probe.summary(cosine, self.categories, self.num)
            matrices[key] = summary.matrix.astype(np.float32)
            for name in ("between", "within", "ratio", "gap"):
                if (value := getattr(summary, name)) is not None:
                    rows.append(row(f"features/{name}", value, **self.about, **where))

        for level in levels:
            parts: dict[str, list[Tensor]] = {}
            for index, layer in enumerate(track(layers, f"cosines, {level} noise")):
                cosine = self.cosines(f"{layer}@{level}")
                parts.setdefault(part(layer), []).append(cosine)
                where = {
                    "layer": short_layer(layer),
                    "part": part(layer),
                    "level": level,
                    "index": index,
                }
                add(f"{short_layer(layer)}@{level}", cosine, **where)
            for name, several in parts.items():
                where = {"layer": name, "part": "mean", "level": level}
                add(f"{name}@{level}", torch.stack(several).mean(0), **where)
        for space in outputs:
            add(space, self.cosines(space), layer=space, part="output")
        write_arrays(folder / MATRICES, self.about, matrices)
        return rows

    def feature_space(self, layers: Sequence[str], levels: Sequence[str], part: str) -> list[Row]:
        """The mean cosine in the layers that the paper calls "feature-space" (Figures 5 and 7)."""
        rows = []
        for level in levels:
            found = probe.summary(self.mean_cosines(layers, level), self.categories, self.num)
            names = ", ".join(short_layer(layer) for layer in layers)
            where = {"layer": "feature space", "part": part, "level": level, "setting": names}
            about = {**self.about, **where}
            rows.append(row("features/feature_space", found.between, **about))
            if found.within is not None:
                rows.append(row("features/feature_space_within", found.within, **about))
        return rows

    def composites(self, cosine: probe.Cosines, asked: Prompts, tokens: bool) -> list[Row]:
        """Cosine of each composite with each of its parts, and its mean with the other concepts
        (figure 7, version 1). With `tokens` entries are "composite: part", seen at its token."""
        order = list(self.entries)
        rows = []
        for composite in asked.composites:
            others = [order.index(c.name) for c in asked.concepts if c.name not in composite.parts]
            for part in composite.parts:
                name = f"{composite.name}: {part}" if tokens else composite.name
                line = cosine[:, order.index(name)].numpy()
                asked_for = {"concept": composite.name, "condition": part}
                where = {**self.about, **asked_for, "level": "high"}
                own = estimate(line[:, order.index(part)], self.num)
                rows.append(row("features/composite", own, **where))
                if others:
                    rest = estimate(line[:, others].mean(1), self.num)
                    rows.append(row("features/composite_others", rest, **where))
        return rows
