"""A sheet of what the text-to-image model draws: sentences of one to three phrases.

    python -m docs.pages

draws it after the pages, because an evaluation of that model keeps none."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from composcope.evaluation import detect
from composcope.experiments.neighbourhoods import (
    Phrase,
    drawn_phrases,
    met_by,
    phrases_of,
    words_of,
)
from composcope.features import sdxl
from composcope.study.table import STEPS

SHEET = "text_control.png"
COLUMNS = 5  # images of each number of phrases
SHEET_WORDS = (
    "What text_control draws when asked for one, two and three objects in a sentence: the first "
    "pictures, none is chosen. It was trained on one and two. ✓: every phrase has an object of its "
    "colour in its third of the picture; shapes are not judged."
)


def sentence_sheet(model: str) -> Figure:
    drawer = sdxl.load(model)
    asked = [[phrases_of(K, index) for index in range(COLUMNS)] for K in (1, 2, 3)]
    drawn = [drawn_phrases(drawer, some, drawer.levels(STEPS)) for some in asked]
    return sheet_of(asked, drawn)


def sheet_of(asked: Sequence[Sequence[list[Phrase]]], drawn: Sequence[np.ndarray]) -> Figure:
    """A row a number of phrases; below each picture what was asked for, and how much of it is met."""
    figure = Figure(figsize=(2.0 * COLUMNS, 2.6 * len(asked)), layout="constrained", dpi=96)
    grid = figure.subplots(len(asked), COLUMNS, squeeze=False)
    for panels, sets, images in zip(grid, asked, drawn, strict=True):
        for panel, phrases, image, found in zip(panels, sets, images, detect(images), strict=True):
            met = met_by(phrases, found)
            mark = "✓" if met == len(phrases) else "✗"
            said = " and\n".join(map(words_of, phrases))
            panel.imshow(image, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            panel.set_xlabel(f"{said}\n{mark} {met} of {len(phrases)}", fontsize=9)
    return figure
