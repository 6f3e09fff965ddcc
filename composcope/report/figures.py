"""The figures of the page: functions of rows and kept arrays, with bars for 95 % intervals; None
where there is nothing to show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.report.drawing import legend
from composcope.report.locality import NOISE_LEVEL, crosses, glow, over, whiskers
from composcope.report.looks import Lines, Look, look
from composcope.report.marks import name, paper_of
from composcope.report.material import k_max_beside_paper, of_side, one
from composcope.results import Row, grouped
from composcope.study.effects import FILLED_9, K_MAX, Measurement, Side, mean_row
from composcope.study.table import BY_NAME

FROM_NOISE = f"{NOISE_LEVEL}, from noise to image"
WIDTH = 4.6  # inches of a figure that shares its line with another, and that a phone can show


def look_of(side: Side) -> Look:
    return look(side.run, side.about["intervention"])


def lines_over(
    rows: Sequence[Row], sides: Sequence[Side], what: str, label: Callable[[Side], str] = name
) -> Lines:
    """A line a model of which this is measured."""
    found = [(look_of(side), label(side), of_side(rows, side, what)) for side in sides]
    return [line for line in found if line[2]]


def met(lines: Lines, trained: int | None, noun: str = "places") -> Figure | None:
    """Places filled, or colours drawn, over K; a line a model."""
    if not lines:
        return None
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    met_panel(figure.add_subplot(), lines, noun, trained)
    return figure


def met_panel(panel: Axes, lines: Lines, noun: str, trained: int | None = None) -> None:
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


PAPER_MARKS = {"v1": ("D", "the paper, v1"), "v3": ("*", "the paper, v3")}


def forest(
    rows: Sequence[Row], sides: Sequence[Side], by: Measurement, gaps: bool = True
) -> Figure | None:
    """A line a model: our value, the paper's K_max beside it; with `gaps` also if not measured."""
    measured = {side: one(rows, side, by.what, **by.coordinates) for side in sides}
    if by == K_MAX:
        measured = {side: k_max_beside_paper(rows, side) for side in sides}
    shown = {side: row for side, row in measured.items() if row or gaps}
    if not any(shown.values()):
        return None
    figure = Figure(figsize=(WIDTH, 1.0 + 0.3 * len(shown)), layout="constrained")
    panel = figure.add_subplot(xlabel=by.words.replace("K_max", "$K_{max}$"))
    paper = {side: paper_of(side) for side in shown if by == K_MAX}
    theirs: dict[str, Any] = {"ms": 6, "mfc": "none", "mec": "gray", "mew": 1}
    for index, (side, row) in enumerate(shown.items()):
        style = look_of(side)
        if row is None:
            panel.text(0, index, " not measured", va="center", fontsize=8, color="gray")
        else:
            found = row.estimate
            looks: dict[str, Any] = {"color": style.color, "marker": style.marker}
            panel.errorbar(found.value, index, xerr=whiskers(found), ms=6, elinewidth=0.9, **looks)
        for value in paper.get(side, ()):
            mark, _ = PAPER_MARKS[value.version]
            panel.plot((value.low + value.high) / 2, index - 0.28, marker=mark, **theirs)
    for mark, label in PAPER_MARKS.values() if any(paper.values()) else ():
        panel.plot([], [], ls="", marker=mark, label=label, **theirs)
    panel.set_yticks(range(len(shown)), list(map(name, shown)))
    panel.set_ylim(len(shown) - 0.4, -0.6)
    panel.set_xlim(left=min(0, panel.get_xlim()[0]))
    panel.grid(axis="x", color="gray", alpha=0.25, lw=0.6)
    legend(panel)
    return figure


def growth(rows: Sequence[Row], sides: Sequence[Side]) -> Figure | None:
    """Figure 8: how far models compose by the most objects of their training images. Left K_max,
    the paper's beside it, right the places filled of nine; a marker a model."""
    most = {side: BY_NAME[side.run].config().objects[1] for side in sides}
    filled = {side: one(rows, side, FILLED_9.what, **FILLED_9.coordinates) for side in sides}
    if sum(row is not None for row in filled.values()) < 2:
        return None
    figure = Figure(figsize=(2 * WIDTH, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    rules = {"strict": ("our strict rule", "full"), "eight": ("paper's rule, 8 images", "none")}
    for shift, (rule, (words, fill)) in zip((-0.08, 0.08), rules.items(), strict=True):
        reached = {side: one(rows, side, "length/k_max", rule=rule) for side in sides}
        at_each(left, most, reached, fill, shift)
        left.plot([], [], "o", color="gray", fillstyle=fill, label=words)
    theirs: dict[str, Any] = {"ls": "", "ms": 7, "mfc": "none", "mec": "gray", "mew": 1}
    for version, (mark, words) in PAPER_MARKS.items():
        own = [(most[side], v) for side in sides for v in paper_of(side) if v.version == version]
        at = [(K, (value.low + value.high) / 2) for K, value in own]
        left.plot(*np.array(at).reshape(-1, 2).T, marker=mark, label=words, **theirs)
    at_each(right, most, filled)
    for panel, words in ((left, "$K_{max}$"), (right, FILLED_9.words)):
        panel.set(xlabel="most objects in a training image", ylabel=words)
        panel.set(xticks=sorted(most.values()), ylim=(0, None))
        panel.set_xlim(0.5, max(most.values()) + 0.5)
    legend(left)
    return figure


def at_each(
    panel: Axes,
    most: Mapping[Side, int],
    found: Mapping[Side, Row | None],
    fill: Any = "full",
    shift: float = 0.0,
) -> None:
    """A point and its interval for each side that is measured, with a thin line through them."""
    known = {side: row.estimate for side, row in found.items() if row is not None}
    for side, estimate in known.items():
        style = look_of(side)
        looks: dict[str, Any] = {"color": style.color, "fmt": style.marker, "fillstyle": fill}
        at = (most[side] + shift, estimate.value)
        panel.errorbar(*at, whiskers(estimate), ms=7, elinewidth=0.9, **looks)
    points = [(most[side] + shift, estimate.value) for side, estimate in known.items()]
    panel.plot(*np.array(sorted(points)).reshape(-1, 2).T, color="gray", lw=0.7, zorder=0)


def over_noise(lines: Lines, words: str, chance: float | None = None) -> Figure | None:
    """Means over pixels by noise level, high noise first, as a sampler walks."""
    if not lines:
        return None
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    panel = figure.add_subplot(xlabel=FROM_NOISE, ylabel=words, xscale="log")
    for style, label, rows in lines:
        by_sigma = grouped(rows, lambda row: float(row.sigma or 0))
        means = [replace(mean_row(some), sigma=sigma) for sigma, some in by_sigma.items()]
        over(panel, means, "sigma", style, label)
    if chance is not None:
        panel.axhline(chance, color="gray", ls=":", lw=1, label="chance")
    panel.set_ylim(bottom=0)
    panel.invert_xaxis()
    legend(panel)
    return figure


def looks_at(maps: Mapping[str, Mapping[str, np.ndarray]]) -> Figure | None:
    """Figure 2: what one pixel (ring) looks at, a row a model, from high noise to low; a cross is
    as bright as its condition acts on that pixel."""
    if not maps:
        return None
    levels = 7
    figure = Figure(figsize=(1.25 * levels + 1.1, 1.3 * len(maps) + 0.3), layout="constrained")
    panels = figure.subplots(len(maps), levels, squeeze=False)
    above: dict[int, str] = {}  # titles, which stand once where rows have the same
    for line, (label, kept) in zip(panels, maps.items(), strict=True):
        chosen = np.linspace(0, len(kept["sigmas"]) - 1, levels).round().astype(int)
        probe = min(2, len(kept["pixels"]) - 1)  # lower left, as in the paper
        pixel = kept["pixels"][probe].tolist()
        for panel, level in zip(line, chosen, strict=True):
            glow(panel, kept["gradients"][level, probe], pixel, ms=8, mew=0.9)
            panel.set(xticks=[], yticks=[])
            title = f"$\\sigma$ = {kept['sigmas'][level]:.2g}"
            if title != above.get(level):
                panel.set_title(title)
            above[level] = title
        acts = kept["influences"][chosen].astype(float)
        if len(kept["places"]):
            crosses(line[None], acts, [pixel], kept["places"])
        line[0].set_ylabel(label)
    return figure


ALL_THERE, NEARLY = "#0072B2", "#A3D4F2"  # apart on light pages and on dark ones


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
            color = ALL_THERE if there else NEARLY if close else "none"
            panel.plot(K, image, "s", ms=10, mfc=color, mec="gray", mew=0.6)
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
    for color, label in ((ALL_THERE, "all K"), (NEARLY, "K - 1 or K - 2"), ("none", "fewer")):
        panel.plot([], [], "s", ms=8, mfc=color, mec="gray", mew=0.6, label=label)
    panel.set(xlim=(0.4, 9.6), ylim=(-2.4, 10.4), xticks=range(1, 10), yticks=[])
    panel.set_xlabel("K, objects asked for")
    panel.spines["left"].set_visible(False)
    legend(panel)
    return figure
