"""How features are shown: cosine matrices (Figures 5, 7, 11, 13), profiles over layers, words over time (Figure 4 v3).

rows "features/<what>" with setting layer, part, level -> a profile; matrices come as arrays
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.report.locality import COLORS, band
from composcope.results import Row

LEVELS = {"high": "tab:red", "mid": "tab:orange", "low": "tab:blue"}


def matrices(named: Mapping[str, Float[np.ndarray, "n n"]], concepts: Sequence[str], title: str = "") -> Figure:
    """One cosine matrix a layer, all on the scale -1 to 1; concepts are named on the first of each row."""
    columns = min(6, len(named))
    rows = -(-len(named) // columns)
    side = max(1.5, 0.11 * len(concepts))
    figure = Figure(figsize=(side * columns + 1.6, (side + 0.35) * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat:
        panel.set_axis_off()
    for index, (panel, (name, matrix)) in enumerate(zip(axes.flat, named.items(), strict=False)):
        panel.set_axis_on()
        shown = panel.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
        panel.set_title(name, fontsize=7)
        panel.set(xticks=[], yticks=range(len(concepts)) if index % columns == 0 else [])
        if index % columns == 0:
            panel.set_yticklabels(concepts, fontsize=5 if len(concepts) > 12 else 6)
    figure.colorbar(shown, ax=axes, shrink=0.6, label="cosine of $d_i$ and $d_j$")
    figure.suptitle(title, fontsize=9)
    return figure


def profile(rows: Sequence[Row]) -> Figure:
    """Over the layers from input to output: within and between categories, and their ratio, with intervals."""
    claims = [c for c in ("between", "within", "ratio") if any(row.claim == f"features/{c}" for row in rows)]
    figure = Figure(figsize=(4.2 * len(claims), 3.4), layout="constrained")
    for panel, claim in zip(figure.subplots(1, len(claims), squeeze=False)[0], claims, strict=True):
        own = [row for row in rows if row.claim == f"features/{claim}" and "index" in row.setting]
        for level, color in LEVELS.items():
            band(panel, [row for row in own if row.setting["level"] == level], level, color, along="index")
        outputs = [row for row in rows if row.claim == f"features/{claim}" and row.setting.get("part") == "output"]
        for row, style in zip(outputs, (":", "--"), strict=False):
            panel.axhline(float(row.value or 0), color="gray", ls=style, lw=1, label=str(row.setting["layer"]))
        panel.set(xlabel="layer, input to output", ylabel=f"{claim}" if claim == "ratio" else f"mean cosine, {claim}")
        bound(panel, own)
        panel.legend(fontsize=7, frameon=False, title="noise", title_fontsize=7)
    return figure


def bound(panel: Axes, rows: Sequence[Row]) -> None:
    """Keep to the values; an interval of a ratio may run off where its denominator crosses zero."""
    values = np.array([float(row.value or 0) for row in rows] or [0.0])
    room = 0.25 * (np.ptp(values) or 1.0)
    panel.set_ylim(values.min() - room, values.max() + room)
    for part in dict.fromkeys(str(row.setting["part"]) for row in rows):
        first = min(row.setting["index"] for row in rows if row.setting["part"] == part)
        panel.axvline(first - 0.5, color="lightgray", lw=0.8, zorder=0)
        panel.text(first - 0.4, 1.0, part, fontsize=7, color="gray", transform=panel.get_xaxis_transform(), va="bottom")


def spaces(rows: Sequence[Row]) -> Figure:
    """Version 3, Figure 5, top left: within and between categories in parts of the U-Net and in output spaces."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    panel = figure.add_subplot(ylabel="mean cosine")
    names = list(dict.fromkeys(row.setting["layer"] for row in rows))
    for shift, (claim, color) in enumerate((("within", "tab:blue"), ("between", "tab:orange"))):
        own = {row.setting["layer"]: row for row in rows if row.claim == f"features/{claim}"}
        at = [i + 0.36 * (shift - 0.5) for i, name in enumerate(names) if name in own]
        found = [own[name] for name in names if name in own]
        value = np.array([float(row.value or 0) for row in found])
        ends = np.array([[float(row.low or 0), float(row.high or 0)] for row in found]).T.reshape(2, -1)
        error = np.abs(ends - value)
        panel.bar(at, value, 0.34, yerr=error, color=color, label=claim, error_kw={"lw": 0.8})
    panel.set_xticks(range(len(names)), names)
    panel.axhline(0, color="black", lw=0.6)
    panel.legend(fontsize=8, frameon=False)
    return figure


def gradients(
    image: UInt8[np.ndarray, "h w 3"],
    maps: Float[np.ndarray, "level pixel height width"],
    levels: Sequence[str],
    pixels: Sequence[tuple[int, int]],
) -> Figure:
    """Version 3, Figure 4, left and centre: the image with the places, and what each looks at, a row a noise level."""
    figure = Figure(figsize=(1.7 * (len(pixels) + 1), 1.75 * len(levels)), layout="constrained")
    axes = figure.subplots(len(levels), len(pixels) + 1, squeeze=False)
    side = maps.shape[-1]
    for row, level in enumerate(levels):
        axes[row, 0].imshow(image, extent=(-0.5, side - 0.5, side - 0.5, -0.5))
        axes[row, 0].set_ylabel(f"{level} noise", fontsize=8)
        for index, (y, x) in enumerate(pixels):
            axes[row, 0].text(x, y, str(index + 1), color="red", fontsize=9, weight="bold", ha="center", va="center")
            seen = np.sqrt(maps[row, index])
            axes[row, index + 1].imshow(seen, cmap="magma", vmin=0, vmax=seen.max() or 1)
            axes[row, index + 1].plot(x, y, "o", mfc="none", mec="white", ms=7, mew=0.8)
            axes[0, index + 1].set_title(f"place {index + 1}", fontsize=8)
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    return figure


def words_over_time(rows: Sequence[Row]) -> Figure:
    """Version 3, Figure 4, right: the influence of each word over noise levels at two places."""
    places = list(dict.fromkeys(tuple(row.setting["place"]) for row in rows))[:2]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for panel, place in zip(panels, places, strict=True):
        own = [row for row in rows if tuple(row.setting["place"]) == place]
        for index, word in enumerate(dict.fromkeys(row.setting["word"] for row in own)):
            band(panel, [row for row in own if row.setting["word"] == word], word, COLORS[index % len(COLORS)])
        panel.set(xscale="log", xlabel="$\\sigma$", title=f"place (u, v) = {place}")
        panel.invert_xaxis()
    panels[0].set_ylabel("influence $I_k$")
    panels[-1].legend(fontsize=7, frameon=False)
    return figure


def word_maps(
    maps: Float[np.ndarray, "time word height width"], words: Sequence[str], sigmas: Sequence[float]
) -> Figure:
    """Where each word is heard: a row a noise level, each row on a scale of its own."""
    figure = Figure(figsize=(1.3 * len(words) + 0.6, 1.4 * len(sigmas) + 0.3), layout="constrained")
    axes = figure.subplots(len(sigmas), len(words), squeeze=False)
    for row, sigma in enumerate(sigmas):
        for column, word in enumerate(words):
            axes[row, column].imshow(maps[row, column], cmap="viridis", vmin=0, vmax=maps[row].max() or 1)
            axes[row, column].set(xticks=[], yticks=[])
            axes[0, column].set_title(word, fontsize=8)
        axes[row, 0].set_ylabel(f"$\\sigma$ = {sigma:.3g}", fontsize=8)
    return figure
