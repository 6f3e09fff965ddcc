"""How locality is shown: heatmaps with crosses (Figure 2), metric curves (Figures 10 and 12), and the scatter.

rows "locality/<what>" with setting sigma, pixel, condition -> a curve over noise levels
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.results import Row

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown", "tab:pink", "tab:cyan")
Pixels = Sequence[tuple[int, int]]


def heatmaps(
    sigmas: Sequence[float],
    images: UInt8[np.ndarray, "level height width 3"],
    gradients: Float[np.ndarray, "level pixel height width"],
    influences: Float[np.ndarray, "level condition height width"],
    pixels: Pixels,
    places: Sequence[tuple[float, float]],
) -> Figure:
    """A column a noise level. First row: one denoised image; below, for each pixel (ring), what it looks at.

    Each heatmap is the root of the gradient, scaled to its own maximum; the crosses' strength is the influence of their
    condition on the pixel, on one scale for each row.
    """
    figure = Figure(figsize=(1.3 * len(sigmas) + 0.4, 1.35 * (len(pixels) + 1) + 0.5), layout="constrained")
    axes = figure.subplots(len(pixels) + 1, len(sigmas), squeeze=False)
    _, height, width, _ = images.shape
    at = np.array([influences[:, :, row, column] for row, column in pixels])  # [pixel, level, condition]
    strength = at / np.maximum(at.max(axis=(1, 2), keepdims=True, initial=0), 1e-12)
    for level, sigma in enumerate(sigmas):
        axes[0, level].imshow(images[level])
        axes[0, level].set_title(f"$\\sigma$ = {sigma:.3g}", fontsize=9)
        for index, (row, column) in enumerate(pixels):
            panel, seen = axes[index + 1, level], np.sqrt(gradients[level, index])
            panel.imshow(seen, cmap="magma", vmin=0, vmax=seen.max() or 1)
            panel.plot(column, row, "o", mfc="none", mec="white", ms=7, mew=0.8)
            for k, (u, v) in enumerate(places):
                alpha = float(0.08 + 0.92 * strength[index, level, k])
                panel.plot(u * width - 0.5, v * height - 0.5, "x", color="cyan", ms=7, mew=2.2, alpha=alpha)
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    for panel, label in zip(axes[:, 0], ["denoised", *(f"({y}, {x})" for y, x in pixels)], strict=True):
        panel.set_ylabel(label, fontsize=9)
    return figure


def curves(rows: Sequence[Row]) -> Figure:
    """Figure 10: each pixel's response to each condition; the square, the energy and the shares over noise levels."""
    pixels = list(dict.fromkeys(tuple(row.setting["pixel"]) for row in rows if row.claim == "locality/square"))
    conditional = any(row.claim == "locality/near_share" for row in rows)
    below = 3 if conditional else 2
    figure = Figure(figsize=(max(2.4 * len(pixels), 3.6 * below), 5.2 if conditional else 2.9), layout="constrained")
    upper, lower = figure.subfigures(2, 1, squeeze=False)[:, 0] if conditional else (None, figure)
    if upper is not None:
        for panel, pixel in zip(upper.subplots(1, len(pixels), sharey=True, squeeze=False)[0], pixels, strict=True):
            own = [row for row in rows if row.claim == "locality/influence" and tuple(row.setting["pixel"]) == pixel]
            lines(panel, own, "condition", COLORS)
            panel.set(title=f"pixel {pixel}", ylabel="influence $I_k$" if pixel == pixels[0] else "")
        upper.axes[0].legend(title="condition", fontsize=7, title_fontsize=7, frameon=False)
    panels = lower.subplots(1, below)
    for panel, claim, label in zip(
        panels, ("square", "energy"), ("side of the square, pixels", "energy"), strict=False
    ):
        lines(panel, [row for row in rows if row.claim == f"locality/{claim}"], "pixel", COLORS)
        panel.set_ylabel(label)
    panels[0].set_ylim(0, None)
    panels[1].set_yscale("log")
    panels[0].legend(title="pixel", fontsize=7, title_fontsize=7, frameon=False)
    if conditional:
        shares(panels[2], rows)
    return figure


def shares(panel: Axes, rows: Sequence[Row]) -> None:
    for claim, label, color in (("near_share", "near its place", "tab:blue"), ("own_share", "own pixel", "tab:orange")):
        band(panel, [row for row in rows if row.claim == f"locality/{claim}"], label, color)
    for chance in {row.setting["chance"] for row in rows if row.claim == "locality/conditional_locality"}:
        panel.axhline(chance, color="tab:blue", ls=":", lw=1, label="chance, near")
    panel.set(ylabel="share of squared influence", ylim=(-0.03, 1.03), xscale="log", xlabel="$\\sigma$")
    panel.legend(fontsize=7, frameon=False)


def lines(panel: Axes, rows: Sequence[Row], by: str, colors: Sequence[str]) -> None:
    """One band for each value of the setting `by`."""
    for index, value in enumerate(dict.fromkeys(str(row.setting[by]) for row in rows)):
        own = [row for row in rows if str(row.setting[by]) == value]
        band(panel, own, value, colors[index % len(colors)])
    panel.set(xscale="log", xlabel="$\\sigma$")


def band(panel: Axes, rows: Sequence[Row], label: str, color: str, along: str = "sigma") -> None:
    """A line over noise levels, or another setting, with its 95 % interval."""
    own = sorted((row for row in rows if row.value is not None), key=lambda row: row.setting[along])
    at, (value, low, high) = [row.setting[along] for row in own], np.array([edges(row) for row in own]).reshape(-1, 3).T
    panel.plot(at, value, marker="o", ms=2.5, lw=1.2, label=label, color=color)
    panel.fill_between(at, low, high, color=color, alpha=0.15, lw=0)


@dataclass(frozen=True)
class Dot:
    """One model at one moment of its training: K_max beyond the trained number, and conditional locality.

    Both as (value, low, high).
    """

    run: str
    snapshot: str
    gain: tuple[float, float, float]
    locality: tuple[float, float, float]


MOMENTS = {"early": "o", "middle": "^", "final": "s"}


def dots(rows: Sequence[Row], rule: str) -> list[Dot]:
    """Models of which K_max by a rule (at the paper's places, no intervention) and conditional locality are known.

    A run that was also judged at the tolerance most of the others have ("RUN within 1/N") counts at that one.
    """
    judged = [
        row
        for row in rows
        if row.claim == f"length/k_max_{rule}"
        and row.setting.get("conditions") == "paper"
        and not row.setting.get("intervention")
    ]
    grids = Counter(row.setting.get("grid") for row in judged if " within " not in row.run)
    usual = grids.most_common(1)[0][0] if grids else None
    ranked = sorted(judged, key=lambda row: " within " in row.run)
    fair = [row for row in ranked if " within " not in row.run or row.setting.get("grid") == usual]
    reached = {(row.run.partition(" within ")[0], row.setting.get("snapshot")): row for row in fair}
    found = {}
    for key, row in measured_alike(rows).items():
        if key in reached:
            value, low, high = (edge - row.setting["trained"] for edge in edges(reached[key]))
            found[key] = Dot(row.run, row.setting["snapshot"], (value, low, high), edges(row))
    return list(found.values())


def measured_alike(rows: Sequence[Row]) -> dict[tuple[str, str | None], Row]:
    """The conditional locality of each run and snapshot: at what most were asked, and of the most samples."""
    own = [row for row in rows if row.claim == "locality/conditional_locality" and row.value is not None]
    asked = [str([row.setting.get(name) for name in ("K", "states", "locations")]) for row in own]
    usual = Counter(asked).most_common(1)[0][0] if own else None
    best: dict[tuple[str, str | None], tuple[tuple[bool, int], Row]] = {}
    for row, what in zip(own, asked, strict=True):
        key, rank = (row.run, row.setting.get("snapshot")), (what == usual, row.setting.get("num", 0))
        if key not in best or rank >= best[key][0]:
            best[key] = rank, row
    return {key: row for key, (_, row) in best.items()}


def edges(row: Row) -> tuple[float, float, float]:
    """The value and its interval; without an interval, the value itself."""
    value = float(row.value or 0)
    return value, value if row.low is None else row.low, value if row.high is None else row.high


def whiskers(value: float, low: float, high: float) -> tuple[float, list[float], list[float]]:
    """A point and how far its interval goes to either side."""
    return value, [max(value - low, 0)], [max(high - value, 0)]


def scatter(points: Sequence[Dot], correlation: str, rule: str, chance: float) -> Figure:
    """Version 3, Figure 2 right: a colour a run, a marker a moment, with intervals both ways."""
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    panel = figure.add_subplot(
        xlabel=f"$K_{{max}}$ ({rule} rule) - trained maximum", ylabel="conditional locality", ylim=(-0.03, 1.03)
    )
    runs = list(dict.fromkeys(point.run for point in points))
    for point in points:
        (gain, *across), (locality, *up) = (whiskers(*sides) for sides in (point.gain, point.locality))
        color, marker = COLORS[runs.index(point.run) % len(COLORS)], MOMENTS.get(point.snapshot, "D")
        panel.errorbar(gain, locality, up, across, marker, color=color, ms=6, lw=0.7, alpha=0.85)
    for run, color in zip(runs, COLORS * 9, strict=False):
        panel.plot([], [], "s", color=color, label=run)
    for moment, marker in MOMENTS.items():
        panel.plot([], [], marker, color="gray", mfc="none", label=moment)
    panel.axhline(chance, color="gray", ls=":", lw=1)
    panel.legend(fontsize=7, frameon=False)
    panel.set_title(f"Spearman {correlation}, {len(points)} dots", fontsize=9)
    return figure
