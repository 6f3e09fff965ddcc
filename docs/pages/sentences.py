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
COLUMNS = 4  # images of each number of phrases
INCH = 96  # pixels
SIDE, BETWEEN, BELOW = 192, 40, 84  # pixels: six for each of the model's, and room for words
SHEET_WORDS = (
    "What text_control draws when asked for one, two and three objects in a sentence: the first "
    "pictures, none is chosen. It was trained on one and two. ✓: every phrase has an object of its "
    "colour in its third of the picture; shapes are not judged."
)


def sentence_sheet(model: str) -> Figure:
    drawer = sdxl.load(model)
    asked = [[phrases_of(K, index) for index in range(COLUMNS)] for K in (1, 2, 3)]
    drawn = [drawn_phrases(drawer, "plain", some, drawer.levels(STEPS)) for some in asked]
    return sheet_of(asked, drawn)


def sheet_of(asked: Sequence[Sequence[list[Phrase]]], drawn: Sequence[np.ndarray]) -> Figure:
    """A row a number of phrases; below each picture what was asked for, and how much of it is met."""
    width, height = COLUMNS * (SIDE + BETWEEN), len(asked) * (SIDE + BELOW)
    figure = Figure(figsize=(width / INCH, height / INCH), dpi=INCH)
    for row, (sets, images) in enumerate(zip(asked, drawn, strict=True)):
        bottom = height - row * (SIDE + BELOW) - SIDE - 4
        shown = zip(sets, images, detect(images), strict=True)
        for column, (phrases, image, found) in enumerate(shown):
            left = column * (SIDE + BETWEEN) + BETWEEN / 2
            box = (left / width, bottom / height, SIDE / width, SIDE / height)
            panel = figure.add_axes(box, xticks=[], yticks=[])
            panel.imshow(image, interpolation="nearest")
            panel.spines[:].set_visible(False)
            met = met_by(phrases, found)
            mark = "✓" if met == len(phrases) else "✗"
            said = " and\n".join(map(words_of, phrases))
            panel.set_xlabel(f"{said}\n{mark} {met} of {len(phrases)}", fontsize=10)
    return figure
