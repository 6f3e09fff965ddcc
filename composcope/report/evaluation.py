"""How an evaluation is shown: the rows of `composcope evaluate` as a table and a curve over K."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL.Image import Image
from rich.console import Group
from rich.markup import escape

from composcope.progress import terminal_table
from composcope.report.drawing import legend
from composcope.report.locality import over
from composcope.report.looks import by_model, label
from composcope.report.sheets import sheet
from composcope.results import Row, where

COLUMNS = {
    "exact": "exact",
    "complete": "none missing",
    "found": "found",
    "missing": "missing",
    "extra": "extra",
    "merged": "merged",
    "count_error": "count error",
    "error": "detector errs",
}
SHARES = ("exact", "complete", "error")  # the others are objects an image
EACH = 8  # images of each K on a sheet


def evaluation_table(rows: Sequence[Row]) -> Group:
    """A line for each K: shares of images and objects an image; below it K_max by each rule."""
    some = rows[0]
    shown = terminal_table("K")
    model = escape(label(str(some.run), some.intervention))
    asked = "the paper's" if some.asked == "paper" else some.asked
    shown.title = f"{model}: {asked} conditions, {some.n} images for each K"
    for name, words in COLUMNS.items():
        # 8 columns hold "86%-100%" in a terminal of 80.
        shown.add_column(words, min_width=8 if name in ("exact", "complete") else None)
    for K in sorted({row.K for row in rows if row.K is not None}):
        cells = [where(rows, what=f"length/{name}", K=K) for name in COLUMNS]
        shown.add_row(str(K), *(value_cell(found[0]) if found else "" for found in cells))
    return Group(shown, *verdicts(rows))


def value_cell(row: Row) -> str:
    assert isinstance(row.value, float | int)
    if row.what.removeprefix("length/") not in SHARES:
        return f"{row.value:.2f}"
    interval = "" if row.low is None else f" [dim]{row.low:.0%}-{row.high:.0%}[/dim]"
    return f"{row.value:.0%}{interval}"


def verdicts(rows: Sequence[Row]) -> list[str]:
    """K_max by each rule, and what of the table it does not count."""
    reached = where(rows, what="length/k_max")
    if not reached:
        return ["There is no K_max: it needs every K from 1 on, and K = 1 was not asked for."]
    told = [verdict_text(row) for row in reached]
    last = reached[0].max_K or 0
    if last < max(row.K or 0 for row in rows):
        told.append(f"K_max counts K up to {last} alone: K = {last + 1} was not asked for.")
    return told


def verdict_text(row: Row) -> str:
    words = {
        "paper": "the paper's rule",
        "strict": "strict rule",
        "eight": "the paper's rule on eight images",
        "places": "the paper's rule, extras not judged",
        "places_eight": "the same on eight images",
    }[str(row.rule)]
    return f"K_max, {words}: {row.value}   95 % interval {row.low} to {row.high}"


def answer_sheet(answers: Sequence[Any]) -> Image:
    """The first images of each K in a row, asked places as dots and found ones as rings.

    answers: what an evaluation keeps, with `images`, `asked` and `found` (evaluation/answers.py).
    """
    images: list[np.ndarray] = []
    dots: list[Sequence] = []
    rings: list[Sequence] = []
    for some in answers:
        blank = np.full_like(some.images[0], 255)
        for i in range(EACH):
            drawn = i < len(some.images)
            images.append(some.images[i] if drawn else blank)
            dots.append([c for c in some.asked[i] if np.shape(c) == (2,)] if drawn else [])
            rings.append([(thing.x, thing.y) for thing in some.found[i]] if drawn else [])
    return sheet(np.stack(images), dots, rings, EACH)


def curve_figure(rows: Sequence[Row]) -> Figure:
    """The share of images that are exactly right over K: a line a model, with its intervals."""
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="K, objects asked for", ylabel=COLUMNS["exact"])
    axes.set_ylim(-0.03, 1.03)
    for style, words, own in by_model(where(rows, what="length/exact")):
        over(axes, own, "K", style, words)
    legend(axes)
    return figure
