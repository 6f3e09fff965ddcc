"""How a diffusion model learns circles of two colours and sizes, one combination unseen: figures
of the rows of `composcope sim --circles`."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from composcope.report.locality import whiskers
from composcope.report.theory import label_axes, panels
from composcope.results import Row, grouped, where

COMBINATIONS = {"red big": "C3", "red small": "C1", "blue big": "C0", "blue small": "black"}
UNSEEN = "blue small"  # never trained on


def circles_figure(rows: Sequence[Row]) -> Figure:
    """Accuracies of one training, and the way of the unseen combination through them."""
    unseen = "the unseen combination: from light to dark"
    figure, axes = panels("accuracy: colour", "accuracy: size", unseen)
    ordered = sorted(where(rows, what="circles/accuracy"), key=lambda row: row.step or 0)
    for axis, concept in zip(axes, ("colour", "size"), strict=False):
        for combination, color in COMBINATIONS.items():
            found = where(ordered, concept=concept, condition=combination)
            steps = [row.step or 0 for row in found]
            values = [row.estimate.value for row in found]
            bars = whiskers(*(row.estimate for row in found))
            style, words = ("o-", " (unseen)") if combination == UNSEEN else (".--", "")
            label = combination + words
            axis.errorbar(steps, values, bars, fmt=style, label=label, color=color, elinewidth=0.7)
    label_axes(axes[0], "training step", "share of draws")
    axes[1].set(xlabel="training step", ylabel="share of draws")  # the same lines
    of_unseen = where(ordered, condition=UNSEEN)
    colour = [row.estimate.value for row in where(of_unseen, concept="colour")]
    size = [row.estimate.value for row in where(of_unseen, concept="size")]
    axes[2].plot(colour, size, color="0.7")
    axes[2].scatter(colour, size, c=np.arange(len(colour)), cmap="Blues", edgecolors="0.5")
    axes[2].set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    label_axes(axes[2], "colour right", "size right")
    return figure


def contrasts_figure(rows: Sequence[Row]) -> Figure:
    """A panel for each contrast: along training, which concept of the unseen combination is right.
    Thin lines are seeds, the thick one is their mean."""
    unseen = where(rows, what="circles/accuracy", condition=UNSEEN)
    by_contrast = grouped(unseen, lambda row: row.contrast)
    levels = sorted(contrast for contrast in by_contrast if contrast is not None)
    figure, axes = panels(*(f"contrast of the colours {level:g}" for level in levels))
    for axis, level in zip(axes, levels, strict=True):
        for concept, color in (("colour", "C0"), ("size", "C1")):
            seeds = grouped(where(by_contrast[level], concept=concept), lambda row: row.seed)
            lines = [sorted(own, key=lambda row: row.step or 0) for own in seeds.values()]
            steps = [row.step or 0 for row in lines[0]]
            values = np.array([[row.estimate.value for row in line] for line in lines])
            axis.plot(steps, values.T, color=color, lw=0.6)
            axis.plot(steps, values.mean(0), "o-", ms=3.5, color=color, label=f"{concept} right")
        axis.set_ylim(-0.05, 1.05)
        label_axes(axis, "training step", "share of draws")
    return figure
