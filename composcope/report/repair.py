"""How repairs are shown: where they end (overlap), what predicts composition, neighbourhoods that
models find themselves. Functions of rows.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from composcope.report.figures import WIDTH, over
from composcope.report.locality import edges
from composcope.report.looks import look
from composcope.results import Row, where
from composcope.study.prediction import LOCALITY, LOSS, points


def label_of(row: Row) -> str:
    return " + ".join(str(part) for part in (row.run, row.intervention) if part)


def lines_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by model: by its name and what is done to it."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(label_of(row), []).append(row)
    return lines


def overlap_figure(rows: Sequence[Row]) -> Figure:
    """Images with both of two objects over the distance of their places; grey: what is known
    without a model.
    """
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    panel = figure.add_subplot(
        xlabel="distance of two places, image sides", ylabel="share of images with both"
    )
    both = where(rows, what="overlap/both")
    for label, own in lines_of([row for row in both if row.run != "scenes"]).items():
        over(panel, own, "distance", look(own[0].run, own[0].intervention), label)
    known = {
        "real scenes, detected": (where(both, run="scenes"), "--"),
        "of an object, in its own neighbourhood": (where(rows, what="overlap/inside"), ":"),
    }
    for label, (own, style) in known.items():
        ordered = sorted(own, key=lambda row: row.distance or 0)
        if ordered:
            x = [row.distance or 0 for row in ordered]
            y = [row.estimate.value for row in ordered]
            panel.plot(x, y, style, color="gray", lw=1.4, label=label)
    for row in where(rows, what="overlap/one_patch"):
        panel.axvline(float(row.value or 0), color=look(row.run).color, ls=":", lw=1)
    panel.axhline(0.5, color="gray", lw=0.6)
    panel.set_ylim(-0.03, 1.03)
    panel.legend(fontsize=8)
    return figure


def prediction_figure(rows: Sequence[Row]) -> Figure:
    """Early locality and early loss against places filled in the end, a dot a run; the rank
    correlation at each noise level.
    """
    figure = Figure(figsize=(3 * 3.7, 3.6), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    for panel, known in ((first, LOCALITY), (second, LOSS)):
        found = points(rows, known)
        for one in found:
            style = look(one.run)
            panel.plot(one.early, one.final, style.marker, color=style.color, ms=5, alpha=0.8)
        panel.set(xlabel=f"early {known}", ylabel="in the end drawn of 6 asked")
        whole = [
            row for row in where(rows, what="predict/spearman", concept=known) if not row.sigma
        ]
        if whole:
            panel.set_title(f"rank correlation {whole[-1].estimate}", fontsize=9)
    levels = [row for row in where(rows, what="predict/spearman", concept=LOCALITY) if row.sigma]
    third.set(
        xlabel="noise level $\\sigma$, from noise to image",
        ylabel="rank correlation",
        xscale="log",
        ylim=(-1.05, 1.05),
    )
    if levels:
        ordered = sorted(levels, key=lambda row: row.sigma or 0)
        value, low, high = np.array([edges(row.estimate) for row in ordered]).T
        bars = np.clip([value - low, high - value], 0, None)
        third.errorbar(
            [row.sigma for row in ordered], value, bars, marker="o", ms=4.5, elinewidth=0.7
        )
        third.invert_xaxis()
    third.axhline(0, color="gray", lw=0.6)
    return figure


def neighbourhood_figure(rows: Sequence[Row]) -> Figure:
    """What is met of what is asked, as the model is and with neighbourhoods of its own: a panel for
    colours, one for phrases.
    """
    kinds = {"length/found": "colours asked for", "text/found": "phrases asked for"}
    shown = {what: words for what, words in kinds.items() if where(rows, what=what)}
    figure = Figure(figsize=(WIDTH * max(len(shown), 1) * 0.8, 3.7), layout="constrained")
    panels = figure.subplots(1, max(len(shown), 1), squeeze=False)[0]
    for panel, (what, words) in zip(panels, shown.items(), strict=False):
        own = where(rows, what=what)
        most = max(row.K or 0 for row in own)
        panel.plot([0, most], [0, most], "--", color="gray", lw=1)
        for label, some in lines_of(own).items():
            over(panel, some, "K", look(some[0].run, some[0].intervention), label)
        panel.set(xlabel=f"K, {words}", ylabel="of them drawn")
        panel.legend(fontsize=8)
    return figure
