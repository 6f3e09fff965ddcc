"""The page of results: the sections of the report, their figures as files beside it.

page(material) -> Markdown, figures by file name
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from composcope.report.cells import Cell, Table
from composcope.report.drawing import multiple
from composcope.report.figures import rule
from composcope.report.findings import NOT_SO, failures
from composcope.report.marks import kind, name, two
from composcope.report.material import Material, of_side
from composcope.report.pictures import FIGURE_1
from composcope.report.section_figures import SIDES
from composcope.report.sections import K_MAX_WORDS, SECTIONS, Section, known_sides
from composcope.report.tables import swatch
from composcope.report.words import facts, headline
from composcope.results.samples import K_SHOWN, Samples
from composcope.study.effects import Side
from docs.pages.markdown import folded, joined, picture, plain, table

FOLDER = "results"  # of the figures, beside the page
FIRST = "figure1.png"  # of Figure 1, which README and the first page show too
LONG = 12  # lines of a table that is folded away
OPENING = """\
# Results

This page is made by `make pages` from the rows that ship with the package. No number on it is typed
by hand. A *row* is one measured number with everything that it depends on. Square brackets hold
95 % intervals. The paper is Bradley, "Local Mechanisms of Compositional Generalization in
Conditional Diffusion" (arXiv 2509.16447). Its versions are written v1 and v3, and runs are numbered
as in v3. [Method](method.md) explains the words. The [cards](cards/README.md) say what each model
is. `composcope rows --csv` prints every row."""


@dataclass(frozen=True)
class Page:
    text: str
    figures: Mapping[str, Figure]  # by the name of the file, from docs/ on


def page(material: Material) -> Page:
    figures: dict[str, Figure] = {f"{FOLDER}/rule.svg": rule()}  # for the page on the method
    parts = [OPENING, "## In short", plain(headline(material.rows))]
    found = [f"- **{number}** {plain(words)}" for number, words in facts(material.rows)]
    parts.append("\n".join(found))
    first = figure_1(material)
    if first is not None:
        figures[FIRST] = first
        parts.append(picture(FIRST, FIGURE_1_WORDS))
    for section in SECTIONS:
        parts += written(section, material, figures)
    return Page(joined(parts), figures)


def written(section: Section, material: Material, figures: dict[str, Figure]) -> list[str]:
    """A question, what the paper says, our answer, figures, tables; figures go into `figures`."""
    parts = [f"## {section.question}", f"**The paper.** {plain(section.paper)}"]
    parts.append(f"**Here.** {plain(section.answer(material))}")
    parts += [plain(text) for text in section.more(material)]
    for number, shown in enumerate(section.figures(material), start=1):
        file = f"{FOLDER}/{section.name}-{number}.svg"
        figures[file] = shown.figure
        parts.append(picture(file, shown.words))
    tables = dict(section.tables(material))
    if section.name == "compose":
        parts += [plain(text) for text in K_MAX_WORDS]
        tables["Places filled, by K"] = by_k(material)
    for title, some in tables.items():
        parts.append(f"### {title}" if title else "")
        long = len(some.lines) > LONG
        parts.append(
            folded(f"The numbers: {len(some.lines)} lines", table(some)) if long else table(some)
        )
    if section.name == "sure":
        parts.append("### What did not come out")
        for title, lines in failures(material.rows, SIDES).items():
            parts.append(f"**{title}.** {NOT_SO[title]}")
            parts.append("\n".join(f"- {plain(line)}" for line in lines))
    return parts


def by_k(material: Material) -> Table:
    """Places filled: a line a model, a column a K."""
    shown = {side: of_side(material.rows, side, "length/found") for side in known_sides(material)}
    Ks = sorted({row.K for rows in shown.values() for row in rows if row.K})
    lines: list[Sequence[Cell]] = []
    for side, rows in shown.items():
        if rows:
            values = {row.K: two(row.value) for row in rows}
            lines.append([swatch(side), *(values.get(K, "") for K in Ks)])
    note = (
        "Means over images. Their intervals: composcope rows --where what=length/found --csv. Their "
        "commands are those above."
    )
    return Table(("run", *(f"K = {K}" for K in Ks)), lines, note)


# ----------------------------------------------------------------------------
# Figure 1.

FIGURE_1_WORDS = (
    "What four models draw when asked for K = 1, 3, 6 and 9 objects: the first picture of each, none "
    "is chosen. A red cross marks a place without its object."
)
SIDE = 256  # pixels of a picture, about: a whole multiple of what the model drew
INCH = 100  # pixels
LEFT, TOP, BELOW, BETWEEN = 210, 42, 42, 8  # pixels around pictures, for words


def figure_1(material: Material, sides: Sequence[Side] = FIGURE_1) -> Figure | None:
    """Columns K = 1, 3, 6, 9, a row a model; None unless pictures of all of them are kept."""
    kept = [material.samples_of(side) for side in sides]
    samples = [some for some in kept if some is not None]
    if len(samples) < len(sides) or not all(some.of(K) for some in samples for K in K_SHOWN):
        return None
    side = multiple(samples[0].images.shape[2], SIDE)
    width = LEFT + len(K_SHOWN) * (side + BETWEEN)
    height = TOP + len(sides) * (side + BELOW)
    figure = Figure(figsize=(width / INCH, height / INCH), dpi=INCH)
    for row, (whose, some) in enumerate(zip(sides, samples, strict=True)):
        bottom = height - TOP - side - row * (side + BELOW)
        words = f"{name(whose)}\n{kind(whose)}".replace(", ", ",\n").replace(" + ", " +\n")
        middle = (bottom + side / 2) / height
        figure.text((LEFT - 8) / width, middle, words, ha="right", va="center", fontsize=15)
        for column, K in enumerate(K_SHOWN):
            # Whole pixels: a picture's pixels are then squares of one size.
            left = LEFT + column * (side + BETWEEN)
            box = (left / width, bottom / height, side / width, side / height)
            panel = figure.add_axes(box)
            first_picture(panel, some, K)
            if row == 0:
                panel.set_title(f"K = {K}", fontsize=16, pad=6)
    return figure


def first_picture(panel, samples: Samples, K: int) -> None:
    """The first image that was asked for K, with a cross at each place that is missing."""
    i = samples.of(K)[0]
    asked = samples.record.asked[i]
    met = samples.record.met[i]
    panel.imshow(samples.images[i], interpolation="nearest", extent=(0, 1, 1, 0))
    for place, there in zip(asked, met, strict=True):
        if not there and not isinstance(place, str):
            panel.plot(*place, "x", color="white", ms=9, mew=3)
            panel.plot(*place, "x", color="#d00030", ms=8, mew=1.6)
    extra = f", +{samples.extra(i)}" if samples.extra(i) else ""
    mark = "✓" if all(met) else "✗"
    panel.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0))
    panel.spines[:].set_visible(False)
    panel.set_xlabel(f"{mark} {sum(met)} of {K}{extra}", fontsize=15, labelpad=4)
