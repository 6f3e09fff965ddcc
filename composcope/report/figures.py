"""The figures of the page: functions of rows and kept arrays, with bars for 95 % intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.report.drawing import legend
from composcope.report.locality import crosses, over, whiskers
from composcope.report.looks import Look, look
from composcope.report.marks import name
from composcope.results import Row, grouped
from composcope.study.effects import Side, mean_row
from composcope.study.paper import PaperValue

WIDTH = 5.6  # inches of a figure that shares its line with another


def look_of(side: Side) -> Look:
    return look(side.run, side.intervention.name if side.intervention else None)


def met(
    lines: Mapping[Side, tuple[str, Sequence[Row]]], trained: int | None, noun: str = "places"
) -> Figure:
    """Places filled, or colours drawn, over K; a line a model."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    looks = [(look_of(side), *line) for side, line in lines.items()]
    met_panel(figure.add_subplot(), looks, noun, trained)
    return figure


def met_panel(
    panel: Axes,
    lines: Sequence[tuple[Look, str, Sequence[Row]]],
    noun: str,
    trained: int | None = None,
) -> None:
    """The dashed line is all that was asked for, the grey ground what training images showed."""
    most = max((row.K or 0 for _, _, rows in lines for row in rows), default=1)
    above: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "color": "gray"}
    panel.plot([0, most], [0, most], "--", color="gray", lw=1)
    panel.annotate("all", (most, most), (-4, 2), **above)
    if trained:
        panel.axvspan(0, trained, color="gray", alpha=0.12, lw=0)
        panel.text(trained / 2, most * 0.97, "trained on", ha="center", fontsize=8, color="gray")
    shifts = np.linspace(-0.12, 0.12, len(lines)) if len(lines) > 1 else [0.0]
    for (style, label, rows), shift in zip(lines, shifts, strict=True):
        over(panel, rows, "K", style, label, float(shift))
    verb = "filled" if noun == "places" else "drawn"
    panel.set(xlabel=f"K, {noun} asked for", ylabel=f"{noun} {verb}", xticks=range(most + 1))
    panel.set_ylim(-0.2, most + 0.4)
    legend(panel)


@dataclass(frozen=True)
class Line:
    """One line of a forest: a model, its row, and what the paper has for it."""

    side: Side
    row: Row | None
    paper: Sequence[PaperValue] = ()


PAPER_MARKS = {"v1": ("$\\diamondsuit$", "the paper, v1"), "v3": ("$\\star$", "the paper, v3")}


def forest(lines: Sequence[Line], words: str) -> Figure:
    """A line a model: our value with its interval, the paper's beside it."""
    figure = Figure(figsize=(WIDTH, 1.0 + 0.3 * len(lines)), layout="constrained")
    panel = figure.add_subplot(xlabel=words)
    for index, line in enumerate(lines):
        style = look_of(line.side)
        if line.row is None or line.row.value is None:
            panel.text(0, index, " not measured", va="center", fontsize=8, color="gray")
        else:
            found = line.row.estimate
            looks: dict[str, Any] = {"color": style.color, "marker": style.marker}
            panel.errorbar(found.value, index, xerr=whiskers(found), ms=6, elinewidth=0.9, **looks)
        for theirs in line.paper:
            mark, _ = PAPER_MARKS[theirs.version]
            middle = (theirs.low + theirs.high) / 2
            panel.plot(middle, index - 0.28, marker=mark, ms=7, color="gray", mew=0.3)
    for mark, label in PAPER_MARKS.values() if any(line.paper for line in lines) else ():
        panel.plot([], [], ls="", marker=mark, ms=7, color="gray", mew=0.3, label=label)
    panel.set_yticks(range(len(lines)), [name(line.side) for line in lines])
    panel.set_ylim(len(lines) - 0.4, -0.6)
    panel.set_xlim(left=min(0, panel.get_xlim()[0]))
    panel.grid(axis="x", color="gray", alpha=0.25, lw=0.6)
    legend(panel)
    return figure


def over_noise(
    lines: Mapping[Side, tuple[str, Sequence[Row]]], words: str, chance: float | None
) -> Figure:
    """A share or a size over noise levels, high noise first, as a sampler walks; means over
    pixels."""
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    panel = figure.add_subplot(
        xlabel="noise level $\\sigma$, from noise to image", ylabel=words, xscale="log"
    )
    for side, (label, rows) in lines.items():
        by_sigma = grouped(rows, lambda row: float(row.sigma or 0))
        means = [replace(mean_row(some), sigma=sigma) for sigma, some in by_sigma.items()]
        over(panel, means, "sigma", look_of(side), label)
    if chance is not None:
        panel.axhline(chance, color="gray", ls=":", lw=1, label="chance")
    panel.set_ylim(bottom=0)
    panel.invert_xaxis()
    legend(panel)
    return figure


def looks_at(maps: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """Figure 2: what one pixel (ring) looks at, a row a model, from high noise to low; a cross is
    as bright as its condition acts on that pixel."""
    levels = 7
    figure = Figure(figsize=(1.25 * levels + 1.1, 1.3 * len(maps) + 0.3), layout="constrained")
    panels = figure.subplots(len(maps), levels, squeeze=False)
    above: dict[int, str] = {}  # titles, which stand once where rows have the same
    for line, (label, kept) in zip(panels, maps.items(), strict=True):
        chosen = np.linspace(0, len(kept["sigmas"]) - 1, levels).round().astype(int)
        probe = min(2, len(kept["pixels"]) - 1)  # lower left, as in the paper
        row, column = kept["pixels"][probe].tolist()
        for panel, level in zip(line, chosen, strict=True):
            root = np.sqrt(kept["gradients"][level, probe].astype(float))
            panel.imshow(root, cmap="magma", vmin=0, vmax=root.max() or 1)
            panel.plot(column, row, "o", mfc="none", mec="white", ms=8, mew=0.9)
            panel.set(xticks=[], yticks=[])
            title = f"$\\sigma$ = {kept['sigmas'][level]:.2g}"
            if title != above.get(level):
                panel.set_title(title, fontsize=8)
            above[level] = title
        acts = kept["influences"][chosen].astype(float)
        if len(kept["places"]):
            crosses(line[None], acts, [(row, column)], kept["places"])
        line[0].set_ylabel(label, fontsize=8)
    return figure


def rule() -> Figure:
    """The paper's rule for K_max by an example: eight images a K of a model trained on 1-3."""
    right = [8, 8, 8, 7, 6, 4, 3, 1, 0]
    near = [0, 0, 0, 1, 2, 4, 5, 7, 6]
    figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
    panel = figure.add_subplot()
    for K, (all_there, nearly) in enumerate(zip(right, near, strict=True), start=1):
        for image in range(8):
            there = image < all_there
            close = image < all_there + nearly
            color = "#0072B2" if there else "#56B4E9" if close else "none"
            faint = 1 if there else 0.6
            panel.plot(K, image, "s", ms=10, mfc=color, mec="gray", mew=0.6, alpha=faint)
        success = all_there == 8 if K <= 3 else all_there + nearly == 8 and all_there > 2
        panel.text(K, 8.25, "✓" if success else "✗", ha="center", va="center", fontsize=13)
    panel.plot([3.5, 3.5], [-0.5, 10.2], color="gray", lw=1, ls="--")
    small: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
    panel.text(2, 9.5, "trained on 1-3:\nall K, in every image", **small)
    panel.text(
        6.6, 9.5, "beyond: never fewer than K - 2,\nand all K in more than a quarter", **small
    )
    arrow = {"arrowstyle": "->", "color": "gray"}
    panel.annotate("$K_{max}$ = 7", (7, -0.55), (7, -2.0), ha="center", arrowprops=arrow)
    for color, label in (("#0072B2", "all K"), ("#56B4E9", "K - 1 or K - 2"), ("none", "fewer")):
        panel.plot([], [], "s", ms=8, mfc=color, mec="gray", mew=0.6, label=label)
    panel.set(xlim=(0.4, 9.6), ylim=(-2.4, 10.4), xticks=range(1, 10), yticks=[])
    panel.set_xlabel("K, objects asked for")
    panel.spines["left"].set_visible(False)
    legend(panel)
    return figure
