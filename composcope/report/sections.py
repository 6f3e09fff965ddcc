"""The sections of the page: a question each, its figures, its answer and its numbers.

Every figure and sentence is a function of the material; with none of a thing it says so in place.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from composcope.report import findings, label_words, section_figures, tables, words
from composcope.report.cells import Table, folded, prose
from composcope.report.every_number import every_number
from composcope.report.interventions import beyond
from composcope.report.marks import POLICIES
from composcope.report.material import Material, of_rooms
from composcope.report.pictures import Shown, figure_html, gallery, is_wide, missing, sheets, walks
from composcope.report.section_figures import (
    COLORS,
    ENTERING,
    FORCED,
    SEEDS,
    SIDES,
    SINGLES,
    TRAINED_LOCAL,
)
from composcope.results import Row, where
from composcope.study.effects import Side, at_equal_images, side_of
from composcope.study.table import BY_NAME


@dataclass(frozen=True)
class Section:
    """A question as a reader asks it; the parts of its answer are functions of the material."""

    name: str
    question: str
    paper: str  # what the paper says of it
    figures: Callable[[Material], Sequence[Shown]]
    none: str  # what stands in place of figures where nothing is measured
    answer: Callable[[Material], str]  # one or two sentences
    tables: Callable[[Material], Mapping[str, Table]]  # by their titles
    every: Callable[[Material], Sequence[Row]]  # all rows that are listed behind the tables
    arranged: Callable[[Sequence[Shown], str], str] = gallery  # figures, or `none`, as HTML
    first: int | None = None  # how many figures are shown at once, if not all
    more: Callable[[Material], Sequence[str]] = lambda material: ()  # folded, with other figures
    beside: Callable[[Material], str] = lambda material: ""  # what stands below the figures
    after: Callable[[Material], str] = lambda material: ""  # what stands below all these words


K_MAX_WORDS = (
    "K is the number of objects asked for. K_max is the largest K such that a model succeeds at K "
    "and at every smaller number.",
    "The paper's rule says what success is. For K up to the most objects in training, every image "
    "shows all K. Beyond that, no image misses more than two, and more than a quarter show all K. "
    "An object counts if it is within a tenth of the image's side of its place. A single bad image "
    "at small K makes K_max 0, so it is a harsh number; the mean number of places filled, above, "
    "says more. On eight images, as many as the paper counted, the same rule is kinder. We draw "
    "eight of our images many times, and give the median K_max and the middle 95 %.",
    "The paper counted by eye. Here a detector counts, a small network trained on our renders. It "
    "sometimes misreads an image; as many failures as that explains are allowed.",
    "Where labels leave objects of training images out, a model adds objects of its own. The paper "
    "reports such extras and does not judge them: 1+(0-2) is a K_max of 1 with up to two extras. "
    "We give it that way too, as K_max by places alone. By our first, harsher reading, an image "
    "with more extras than labels leave out fails.",
    "The strict rule is ours: at every K at least half of the images show all K, and the 95 % "
    "interval of that share lies above a quarter.",
)


def with_rule(shown: Sequence[Shown], none: str) -> str:
    """Figures with K_max in words; those that have a line of their own follow."""
    explained = "".join(f"<p>{html.escape(text)}</p>" for text in K_MAX_WORDS)
    small, wide = (
        "".join(figure_html(one) for one in shown if is_wide(one) == alone)
        for alone in (False, True)
    )
    return f'<div class=figures>{small}<div class="small rule">{explained}</div>{wide}</div>'


# The sections.


def of_runs(rows: Sequence[Row], sides: Sequence[Side]) -> list[Row]:
    return where(of_rooms(rows, "length"), run=list({side.run for side in sides}))


def every(rows: Sequence[Row]) -> str:
    return folded(f"All {len(rows):,} numbers, by run", every_number(rows)) if rows else ""


def known_sides(material: Material, what: str = "length/k_max") -> list[Side]:
    """The study's runs, then all others: score machines, runs of one's own."""
    found = [row for row in where(material.rows, what=what) if row.run and row.run not in BY_NAME]
    others = (side_of(row.run, row.intervention, row.radius) for row in found)
    return [*SIDES, *dict.fromkeys(others)]


def sure_tables(material: Material) -> dict[str, Table]:
    sides = known_sides(material)
    return {
        "Comparisons": findings.comparisons(material.rows),
        "Seeds": tables.lengths(material.rows, at_equal_images(SEEDS, material.rows)),
        "Other places": tables.other_places(material.rows, sides),
        "Other tolerances": tables.tolerances(material.rows, sides),
        "The detector's own error": tables.detector(material.rows, sides),
    }


def failure_lists(material: Material) -> str:
    kinds = findings.failures(material.rows, SIDES)
    if not kinds:
        return missing("All that was measured came out.")
    parts = []
    for title, lines in kinds.items():
        items = "".join(f"<li>{prose(line)}</li>" for line in lines)
        note = f"<p class=small>{html.escape(findings.NOT_SO[title])}</p>"
        parts.append(f"<h3>{title} ({len(lines)})</h3>{note}<ul class=small>{items}</ul>")
    return f"<details open><summary>What did not come out</summary>{''.join(parts)}</details>"


SECTIONS = (
    Section(
        "compose",
        "Does it compose?",
        "A model trained on at most three objects draws up to nine if the places of all objects "
        "were labelled on a grid (exp1). With a single label (exp2) or a list of places (exp3) it "
        "fails.",
        section_figures.compose_figures,
        "",
        lambda m: words.composes(m.rows, SIDES),
        lambda m: {"": tables.lengths(m.rows, known_sides(m), tables.LENGTH_WORDS)},
        lambda m: of_rooms(m.rows, "length"),
        arranged=with_rule,
        beside=lambda m: folded("Images of every model", sheets(m)),
    ),
    Section(
        "look",
        "Why: where does the score look?",
        "The score is the direction in which a model changes a noisy image. Models that compose "
        "have a local one: a pixel looks only at pixels near it, and responds only to conditions "
        "(objects asked for) near it.",
        section_figures.look_figures,
        "Where scores look is not measured; composcope locality exp1 does it.",
        lambda m: words.looks(m.rows),
        lambda m: {"": tables.localities(m.rows, known_sides(m, "locality/square"))},
        lambda m: of_rooms(m.rows, "locality"),
    ),
    Section(
        "forced",
        "What if it is forced to be local?",
        "A network that sees only patches and the conditions inside them (exp2l) composes where "
        "one that sees the whole image (exp2) fails. Local conditions are our addition: while exp2 "
        "draws, each pixel is given only the condition near it. Nothing is trained.",
        section_figures.forced_figures,
        "Not measured; composcope evaluate exp2 --intervention local does it.",
        lambda m: words.forced(m.rows),
        lambda m: {
            "Local by training": tables.lengths(m.rows, TRAINED_LOCAL),
            "Local at sampling time: interventions on exp2": tables.interventions(m.rows),
        },
        lambda m: [r for r in of_runs(m.rows, FORCED) if r.intervention or r.run != "exp2"],
        beside=walks,
        first=2,
        more=lambda m: beyond(m.rows),
    ),
    Section(
        "labels",
        "Which labels?",
        "The fewer objects of a training image are labelled, the less a model composes (Table 2). "
        "Trained on single objects, it draws one (Table 1).",
        section_figures.label_figures,
        "Not measured; composcope reproduce --only exp1,random,drop-one,exp2 does it.",
        lambda m: f"{label_words.policies(m.rows)} {label_words.single(m.rows)}",
        lambda m: {
            "Which objects are labelled": tables.lengths(m.rows, at_equal_images(POLICIES, m.rows)),
            "Trained on single objects": tables.lengths(m.rows, SINGLES),
            "How labels enter the network": tables.lengths(
                m.rows, at_equal_images(ENTERING, m.rows)
            ),
        },
        lambda m: of_runs(m.rows, [*POLICIES[1:3], *SINGLES, *ENTERING[1::2]]),
        more=lambda m: label_words.entering(m.rows),
    ),
    Section(
        "elsewhere",
        "Colours and words: is it local elsewhere?",
        "Colours have no place, yet they compose in part. Inside the network each colour has a "
        "direction (the mean activation with the colour minus the mean without), and directions of "
        "different colours are nearly orthogonal. In SDXL, a large text-to-image model, pixels are "
        "local and conditions are not, and concepts have separate directions inside the network. "
        "Here color is a model that is asked for colours, and text_control a small text-to-image "
        "model built like SDXL.",
        section_figures.elsewhere_figures,
        "Not measured; composcope features color does it.",
        lambda m: words.elsewhere(m.rows),
        lambda m: {
            "How far colours compose": tables.lengths(m.rows, COLORS),
            "How alike concepts are": tables.cosine_table(m.rows),
        },
        lambda m: of_rooms(m.rows, "features"),
        first=3,
        more=lambda m: words.two_places(m.rows),
    ),
    Section(
        "theory",
        "What does theory say?",
        "A distribution of images composes if each condition determines pixels of its own and the "
        "rest look as if nothing were asked for. Its score is then exactly local (Lemma 1). If it "
        "nearly composes, the error of a local score is bounded (Lemma 2).",
        section_figures.theory_figures,
        "Not measured; composcope theory and composcope sim do it.",
        lambda m: words.theory(m.rows),
        lambda m: {
            "The paper's theory": findings.claim_table(m.rows, "theory"),
            "Structured Identity Mapping": findings.claim_table(m.rows, "sim"),
        },
        lambda m: of_rooms(m.rows, "circles"),
        first=2,
    ),
    Section(
        "sure",
        "How sure are we?",
        "It gives no intervals, and each model is trained once.",
        section_figures.sure_figures,
        "Seeds are not measured.",
        lambda m: words.sure(m.rows),
        sure_tables,
        lambda m: [],
        after=failure_lists,
    ),
)


def number_tables(shown: Section, material: Material) -> str:
    """Its tables, each under its title, and every row behind them."""
    parts = []
    for title, table in shown.tables(material).items():
        heading = f"<h3>{html.escape(title)}</h3>" if title else ""
        parts.append(f"{heading}{table}")
    return "".join(parts) + every(shown.every(material))


def section(shown: Section, material: Material) -> str:
    answer = f"<p class=answer>{prose(shown.answer(material))}</p>"
    figures = shown.figures(material)
    pictures = shown.arranged(figures[: shown.first], shown.none) + shown.beside(material)
    others = figures[shown.first :] if shown.first else ()
    more = "".join(f"<p class=more>{prose(text)}</p>" for text in shown.more(material))
    more += gallery(others, "") if others else ""
    if more:
        answer += folded("More on this question", more)
    return (
        f"<section id={shown.name}><h2>{html.escape(shown.question)}</h2>"
        "<p class=small><b>The paper:</b> "
        f"{html.escape(shown.paper)}</p>{pictures}{answer}{shown.after(material)}"
        f"{folded('Numbers, intervals and commands', number_tables(shown, material))}</section>"
    )
