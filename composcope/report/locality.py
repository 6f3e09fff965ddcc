"""How locality is shown: heatmaps with crosses (Figure 2), metric curves (Figures 10 and 12), the
scatter over models.

rows "locality/<what>" with sigma, pixel, condition -> curves;   kept maps (maps.npz) -> heatmaps"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.report.drawing import by_line, legend
from composcope.report.looks import Look, look
from composcope.report.marks import with_interval
from composcope.results import Estimate, Row, grouped, spearman, where, with_value
from composcope.study.table import TOLERANCE

COLORS = ("blue", "orange", "green", "red", "purple", "brown", "pink", "cyan")  # Matplotlib's tab:
# Sizes of dots, by how far the training had come.
MOMENTS = {"first": 2.0, "early": 3.0, "middle": 5.0}
FINAL = 7.5
NOISE_LEVEL = "noise level $\\sigma$"


def heatmaps(maps: Mapping[str, np.ndarray]) -> Figure:
    """A column a noise level. First row: one denoised image; below, for each pixel (ring), what it
    looks at.

    maps: as `locality` keeps them: sigmas, pictures, gradients, influences, pixels, places,
    conditions. A heatmap is the root of the gradient, on a scale of its own; the crosses' strength
    is the influence of their condition on the pixel, on one scale for each row. Conditions without
    places have maps of their influence below, on one scale for each noise level."""
    sigmas = maps["sigmas"]
    pixels = [tuple(pixel) for pixel in maps["pixels"].tolist()]
    places = maps["places"]
    influences = maps["influences"].astype(float)
    without = [] if len(places) else list(maps["conditions"])
    labels = ["denoised", *(f"({y}, {x})" for y, x in pixels), *without]
    size = (1.3 * len(sigmas) + 0.4, 1.35 * len(labels) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(labels), len(sigmas), squeeze=False)
    for level, sigma in enumerate(sigmas):
        axes[0, level].imshow(maps["pictures"][level])
        axes[0, level].set_title(f"$\\sigma$ = {sigma:.3g}", fontsize=9)
        seen, below = np.split(axes[1:, level], [len(pixels)])
        for panel, gradient, pixel in zip(seen, maps["gradients"][level], pixels, strict=True):
            glow(panel, gradient, pixel, ms=7, mew=0.8)
        strongest = influences[level].max(initial=0) or 1
        for panel, acts in zip(below, influences[level], strict=False):
            panel.imshow(acts, cmap="viridis", vmin=0, vmax=strongest)
    if len(places):
        crosses(axes[1:], influences, pixels, places)
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    for panel, label in zip(axes[:, 0], labels, strict=True):
        panel.set_ylabel(label, fontsize=9)
    return figure


def glow(panel: Axes, gradient: np.ndarray, pixel: Sequence[int], **ring: Any) -> None:
    """What a pixel (ring) looks at: the root of its gradient."""
    root = np.sqrt(gradient.astype(float))
    panel.imshow(root, cmap="magma", vmin=0, vmax=root.max() or 1)
    panel.plot(pixel[1], pixel[0], "o", mfc="none", mec="white", **ring)


def crosses(
    panels: np.ndarray, influences: np.ndarray, pixels: Sequence[Sequence[int]], places: np.ndarray
) -> None:
    """A cross at each condition's place, the stronger the more it acts on the row's pixel."""
    height, width = influences.shape[-2:]
    for own, (row, column) in zip(panels, pixels, strict=True):
        at = influences[:, :, row, column]  # [level, condition]
        strength = at / (at.max(initial=0) or 1)
        for panel, strengths in zip(own, strength, strict=True):
            for (u, v), strong in zip(places, strengths, strict=True):
                looks: dict[str, Any] = {"color": "cyan", "alpha": float(0.08 + 0.92 * strong)}
                panel.plot(u * width - 0.5, v * height - 0.5, "x", ms=7, mew=2.2, **looks)
            panel.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))


def curves(rows: Sequence[Row]) -> Figure:
    """Figure 10, over noise levels: influences on each pixel; square, energy and shares."""
    pixels = list(dict.fromkeys(row.pixel for row in where(rows, what="locality/square")))
    conditional = bool(where(rows, what="locality/influence"))
    below = 3 if conditional else 2
    size = (max(2.4 * len(pixels), 3.6 * below), 5.2 if conditional else 2.9)
    figure = Figure(figsize=size, layout="constrained")
    lower: Any = figure
    if conditional:
        upper, lower = figure.subfigures(2, 1, squeeze=False)[:, 0]
        panels = upper.subplots(1, len(pixels), sharey=True, squeeze=False)[0]
        for panel, pixel in zip(panels, pixels, strict=True):
            own = where(rows, what="locality/influence", pixel=pixel)
            lines_by(panel, own, lambda row: row.condition)
            panel.set_title(f"pixel {pixel}")
        panels[0].set_ylabel("influence $I_k$")
        legend(panels[0])
    panels = lower.subplots(1, below)
    sizes = {"locality/square": "side of the square, pixels", "locality/energy": "energy"}
    for panel, (what, label) in zip(panels, sizes.items(), strict=False):
        lines_by(panel, where(rows, what=what), lambda row: row.pixel)
        panel.set_ylabel(label)
    panels[0].set_ylim(0, None)
    panels[1].set_yscale("log")
    legend(panels[0])
    if conditional:
        shares(panels[2], rows)
    return figure


SHARES = {
    "locality/near_share": ("near its place", "tab:blue"),
    "locality/own_share": ("own pixel", "tab:orange"),
    "locality/overlap": ("overlap of conditions", "tab:green"),
}


def shares(panel: Axes, rows: Sequence[Row]) -> None:
    """Where conditions act, over noise levels, with chance dotted in the same colour."""
    for what, (label, color) in SHARES.items():
        own = [row for row in with_value(where(rows, what=what)) if row.sigma is not None]
        if not own:
            continue
        over(panel, own, "sigma", Look(color, "o"), label)
        known = sorted((row.sigma, row.chance) for row in own if row.chance is not None)
        if known:
            panel.plot(*zip(*known, strict=True), ":", color=color, lw=1)
    panel.set(ylabel="share (dotted: chance)", ylim=(-0.03, 1.03), xscale="log", xlabel=NOISE_LEVEL)
    legend(panel)


def lines_by(panel: Axes, rows: Sequence[Row], by: Callable[[Row], object]) -> None:
    """A line over noise levels for each value of a coordinate."""
    for index, (value, own) in enumerate(grouped(rows, by).items()):
        over(panel, own, "sigma", Look(f"tab:{COLORS[index % len(COLORS)]}", "o"), str(value))
    panel.set(xscale="log", xlabel=NOISE_LEVEL)


def over(
    panel: Axes, rows: Sequence[Row], along: str, style: Look, label: str, shift: float = 0.0
) -> None:
    """A line over a coordinate, with a thin bar for every 95 % interval."""
    own = sorted(with_value(rows), key=lambda row: getattr(row, along))
    at = np.array([getattr(row, along) for row in own], float) + shift
    looks: dict[str, Any] = {"color": style.color, "marker": style.marker, "ms": 4.5, "lw": 1.4}
    estimates = [row.estimate for row in own]
    values = [found.value for found in estimates]
    panel.errorbar(at, values, whiskers(*estimates), elinewidth=0.7, label=label, **looks)


def whiskers(*found: Estimate) -> np.ndarray:
    """How far the intervals of points go to either side, [2, point]."""
    values = np.array([one.value for one in found])
    low, high = np.array([one.ends for one in found]).reshape(-1, 2).T
    return np.clip([values - low, high - values], 0, None)


# The scatter (version 3, Figure 2 right).


# How far a model composes: K_max by either rule, less the most objects of its training images, or
# the places it fills of more than any run was trained on.
OF = 6
REACHES = {
    "paper": "$K_{max}$ (paper rule) less the most objects in training",
    "strict": "$K_{max}$ (strict rule) less the most objects in training",
    "filled": f"places filled of {OF}",
}


@dataclass(frozen=True)
class Dot:
    """One model at one moment of its training."""

    run: str
    snapshot: str | None
    weights: str | None
    reach: Estimate  # how far it composes
    locality: Estimate  # conditional locality


def dots(rows: Sequence[Row], reach: str = "paper") -> list[Dot]:
    """Models of which both are known: how far they compose (a key of REACHES), at the paper's
    places, without intervention, at the usual tolerance; conditional locality along trajectories
    at the usual conditions.

    The two are of the same weights: run, snapshot and fingerprint agree."""
    plain = where(rows, intervention=None, asked="paper")
    how: dict[str, Any] = {"what": "length/k_max", "rule": reach}
    if reach == "filled":
        how = {"what": "length/found", "K": OF}
    looked = where(plain, what="locality/conditional_locality", states="trajectory", setting=None)
    local = newest(looked)
    found = []
    for model, row in newest(where(plain, tolerance=TOLERANCE, **how)).items():
        if model not in local or row.value is None or local[model].value is None:
            continue
        trained = row.trained if row.trained is not None else local[model].trained
        less = 0 if reach == "filled" else trained
        if less is not None:
            value, (low, high) = row.estimate.value, row.estimate.ends
            far = Estimate(value - less, low - less, high - less, row.n)
            found.append(Dot(str(row.run), row.snapshot, row.weights, far, local[model].estimate))
    return found


def newest(rows: Sequence[Row]) -> dict[tuple, Row]:
    """By model: of several rows the one of most samples counts, then the last measured."""
    ordered = sorted(rows, key=lambda row: (row.n or 0, row.date or ""))
    return {(row.run, row.snapshot, row.weights): row for row in ordered}


def correlation(points: Sequence[Dot]) -> Estimate | None:
    """Spearman's rank correlation of reach and locality; None for fewer than three dots."""
    if len(points) < 3:
        return None
    pairs = np.array([(point.reach.value, point.locality.value) for point in points])
    return spearman(*pairs.T)


def scatter(by_reach: Mapping[str, Sequence[Dot]]) -> Figure:
    """A panel for each way to say how far a model composes: the look of each run, the larger the
    later in its training, with intervals both ways."""
    figure = Figure(figsize=(1.2 + 4.4 * len(by_reach), 4.4), layout="constrained")
    panels = figure.subplots(1, len(by_reach), sharey=True, squeeze=False)[0]
    for panel, (reach, points) in zip(panels, by_reach.items(), strict=True):
        scattered(panel, points)
        panel.set(xlabel=REACHES[reach], ylim=(-0.03, 1.03))
    panels[0].set_ylabel("conditional locality")
    columns = 3 * len(by_reach)
    names = by_line(columns, *panels[-1].get_legend_handles_labels())
    figure.legend(*names, loc="outside upper left", ncols=columns, fontsize=8)
    return figure


def scattered(panel: Axes, points: Sequence[Dot]) -> None:
    named: set[str] = set()
    for point in points:
        style = look(point.run)
        looks: dict[str, Any] = {"color": style.color, "fmt": style.marker, "lw": 0.7}
        looks |= {"ms": MOMENTS.get(point.snapshot or "", FINAL), "alpha": 0.85}
        looks["label"] = "" if point.run in named else point.run
        named.add(point.run)
        at = (point.reach.value, point.locality.value)
        panel.errorbar(*at, whiskers(point.locality), whiskers(point.reach), **looks)
    found = correlation(points)
    words = (
        "too few for a correlation" if found is None else f"rank correlation {with_interval(found)}"
    )
    panel.set_title(f"{words}, {len(points)} dots", fontsize=9)
