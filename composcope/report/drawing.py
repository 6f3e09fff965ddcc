"""Figures and pictures as parts of a page: SVG in the page's ink, pixels in whole multiples.

with style(): figure = curve(...)        svg(figure) -> "<svg ...>"
"""

import base64
import html
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Shaped, UInt8
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

INK = "#010203"  # stands for the page's own colour of text, light or dark
SIDE = 128  # pixels of a picture on the page, about
numbers = itertools.count()


@contextmanager
def style() -> Iterator[None]:
    """Figures made here have clear grounds and the page's ink; images keep their own pixels."""
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    settings = {name: INK for name in ink} | {
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9,
        "figure.facecolor": "none",
        "font.size": 9,
        "image.interpolation": "none",
        "legend.frameon": False,
        "path.simplify_threshold": 1.0,  # pixels that a long curve may be off
        "svg.fonttype": "path",
    }
    with matplotlib.rc_context(settings):
        yield


def asset(name: str) -> str:
    """A style sheet or a script of static/, as part of the page."""
    tag = "style" if name.endswith(".css") else "script"
    text = Path(__file__).with_name("static").joinpath(name).read_text("utf-8")
    return f"<{tag}>\n{text}</{tag}>"


def legend(panel: Axes) -> None:
    """The names of lines above the panel, where they cover nothing, and its title above them."""
    handles, labels = panel.get_legend_handles_labels()
    if not labels:
        return
    grid = panel.get_subplotspec()
    inches = panel.figure.bbox.width / panel.figure.dpi
    width = 72 * inches / (grid.get_gridspec().ncols if grid else 1)  # points
    longest = 35 + 4.8 * max(map(len, labels))  # of a line's sample and its name
    columns = min(len(labels), max(1, int(0.88 * width / longest)))
    spacing = {"columnspacing": 1.2, "handletextpad": 0.5, "borderaxespad": 0.2, "borderpad": 0.2}
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns}
    lines = -(-len(labels) // columns)
    handles, labels = by_line(columns, handles, labels)
    panel.legend(handles, labels, fontsize=8, **where, **spacing)
    if panel.get_title():
        panel.set_title(panel.get_title(), fontsize=9, pad=8 + 12.5 * lines)


def by_line(columns: int, handles: list, labels: list[str]) -> tuple[list, list[str]]:
    """Handles and labels so that a legend reads line by line; Matplotlib fills columns. What has no
    intervals, such as chance, comes last."""
    pairs = sorted(zip(handles, labels, strict=True), key=lambda one: isinstance(one[0], Line2D))
    named = [pair for column in range(columns) for pair in pairs[column::columns]]
    return [handle for handle, _ in named], [label for _, label in named]


def svg(figure: Figure, words: str) -> str:
    """The figure as part of an HTML page; `words` are its alternative text."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": words}):
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(f"{INK}|#000000|#000(?![0-9a-f])", "currentColor", text)
    # A hundredth of a point is enough, and a third of the file smaller; scales are below one.
    text = re.sub(r"\b([1-9]\d*\.\d\d)\d+", r"\1", text)
    # Neither indented nor in the older spelling of links, it is a tenth smaller.
    text = re.sub(r"\s*\n\s*", "\n", text).replace("xlink:href=", "href=")
    # Every figure has names of its own, and letters the shortest.
    text = re.sub(r'(id="|href="#)DejaVuSans-', r"\1", text)
    prefix = f"f{next(numbers)}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = text.replace("url(#", f"url(#{prefix}").replace('href="#', f'href="#{prefix}')
    width = figure.get_figwidth() * 96
    attributes = f'role="img" aria-label="{html.escape(words)}" style="--natural:{width:.0f}px"'
    return re.sub(
        r'<svg (?:[^>]*?)(viewBox="[^"]*")[^>]*>',
        rf'<svg xmlns="http://www.w3.org/2000/svg" \1 {attributes}>',
        text,
        count=1,
    )


def address(image: UInt8[np.ndarray, "h w channel"], kind: str = "PNG", **how: Any) -> str:
    """Of a picture that is inside the page."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, kind, optimize=True, **how)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def multiple(width: int, wanted: int = SIDE) -> int:
    """The width in pixels on the page: a whole multiple, as near to what is wanted as can be."""
    return width * max(1, round(wanted / width))


def mosaic(
    images: Shaped[np.ndarray, "n h w *channel"], columns: int, blank: float = 255
) -> Shaped[np.ndarray, "height width *channel"]:
    """Images row by row; what is missing of the last row is blank."""
    blanks = np.full((-len(images) % columns, *images.shape[1:]), blank, images.dtype)
    rows = np.concatenate([images, blanks]).reshape(-1, columns, *images.shape[1:])
    high = np.concatenate(list(rows), axis=1)  # [column, height, w]
    return np.concatenate(list(high), axis=1)
