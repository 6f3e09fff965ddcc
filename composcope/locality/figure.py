"""The picture of an audit. It is drawn here and not in the report, which shows rows and kept arrays
of many models: an audit shows the maps it holds, for a denoiser that only its owner has."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from composcope.locality.audit import Audit

SIDE = 1.4  # inches of a panel


def figure_of(audit: "Audit") -> Figure:
    """A column a noise level: the first sample denoised, what pixels look at, where conditions act.

    Maps are means over samples; gradients are shown by their roots, each panel on a scale of its
    own, influences on one scale for each noise level."""
    looked = [level.gradients.shape[1] > 0 for level in audit.levels]
    pixels = audit.pixels if any(looked) else ()
    labels = ["denoised", *(f"pixel {pixel}" for pixel in pixels), *audit.conditions]
    size = (SIDE * len(audit.levels) + 0.6, SIDE * len(labels) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(labels), len(audit.levels), squeeze=False)
    for column, level in zip(axes.T, audit.levels, strict=True):
        column[0].imshow(level.picture)
        column[0].set_title(f"$\\sigma$ = {level.sigma:.3g}", fontsize=9)
        heat(column[1:], level.gradients, pixels)
        influence = level.influences[0]
        if audit.conditions:
            influence = np.nanmean(level.influences, axis=0)
        strongest = influence.max(initial=0) or 1
        for panel, acts in zip(column[1 + len(pixels) :], influence, strict=True):
            panel.imshow(acts, cmap="viridis", vmin=0, vmax=strongest)
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    for panel, label in zip(axes[:, 0], labels, strict=True):
        panel.set_ylabel(label, fontsize=8, parse_math=False)  # a name may hold $
    return figure


def heat(
    panels: Iterable[Axes],
    gradients: Float[np.ndarray, "sample pixel height width"],
    pixels: Sequence[tuple[int, int]],
) -> None:
    """What each pixel (ring) looks at; a level without gradients leaves its panels empty."""
    for panel, maps, (row, column) in zip(panels, gradients.swapaxes(0, 1), pixels, strict=False):
        seen = np.sqrt(maps.mean(0))
        panel.imshow(seen, cmap="magma", vmin=0, vmax=seen.max() or 1)
        panel.plot(column, row, "o", mfc="none", mec="white", ms=7, mew=0.8)
