"""The sections of the page: a question each, its figures, its answer and its numbers.

Every figure and sentence is a function of the material; with none of a thing it says so in place.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from composcope.report import features, figures, locality, repair, tables, words
from composcope.report.figures import Line
from composcope.report.material import Material, of_side, one
from composcope.report.pictures import Shown, drawn, gallery, missing, sheets, walks
from composcope.report.tables import Table, folded
from composcope.report.theory import circles_figure, toy_figures
from composcope.report.words import DISTILLED, EXP1, EXP2, EXP2L, MENDED, POLICIES, kind, name
from composcope.results import Row, where
from composcope.study.table import BY_NAME, INTERVENTIONS, RUNS, Side, at_equal_images

SIDES = tuple(Side(run.name) for run in RUNS)
MAIN = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
FORCED = (
    EXP2,
    *(Side("exp2", some) for some in INTERVENTIONS),
    DISTILLED,
    Side("exp2-penalty"),
    EXP2L,
    Side("exp2l-wide"),
)
COLORS = (Side("color"), Side("color-three"))
SEED_RUNS = ("exp1", "exp1-seed1", "exp2", "exp2-seed1", "exp3", "exp3-seed1")
SEEDS = tuple(Side(run) for run in SEED_RUNS)


@dataclass(frozen=True)
class Section:
    """A question as a reader asks it; the parts of its answer are functions of the material."""

    name: str
    question: str
    paper: str  # what the paper says of it
    figures: Callable[[Material], Sequence[Shown]]
    none: str  # what stands in place of figures where nothing is measured
    answer: Callable[[Material], Sequence[str]]
    tables: Callable[[Material], Mapping[str, Table]]  # by their titles
    every: Callable[[Material], Sequence[Row]]  # all rows that are listed behind the tables
    arranged: Callable[[Sequence[Shown], str], str] = gallery  # figures, or `none`, as HTML
    beside: Callable[[Material], str] = lambda material: ""  # what stands below the figures
    after: Callable[[Material], str] = lambda material: ""  # what stands below the answer


# ----------------------------------------------------------------------------
# The figures of each section.


def lines_over(
    rows: Sequence[Row], sides: Sequence[Side], what: str
) -> dict[Side, tuple[str, list[Row]]]:
    found = {side: (name(side), of_side(rows, side, what)) for side in sides}
    return {side: line for side, line in found.items() if line[1]}


def k_max_lines(rows: Sequence[Row], sides: Sequence[Side]) -> list[Line]:
    lines = []
    for side in sides:
        paper = (
            BY_NAME[side.run].paper_k_max if side.run in BY_NAME and not side.intervention else ()
        )
        lines.append(Line(side, name(side), one(rows, side, "length/k_max", rule="paper"), paper))
    return lines


def measured(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.row is not None]


K_MAX_WORDS = (
    "K_max is the largest K such that a model succeeds at K and at every number below it.",
    "Success is the paper's rule: up to as many objects as in training, all of them in every "
    "image; beyond, never more than two missing, and all of them in more than a quarter of the "
    "images. An object counts within a tenth of the image's side of its place. One bad image in "
    "training's range is enough to fail, so K_max is harsh: the mean number of objects drawn, "
    "above, says more.",
    "Where the detector itself may misread an image, as many failures are allowed. The strict rule "
    "is ours: all objects "
    "in at least half of the images, at every K, and surely in more than a quarter.",
)


def compose_figures(material: Material) -> list[Shown]:
    shown = []
    lines = lines_over(material.rows, MAIN, "length/found")
    if lines:
        text = (
            "Objects drawn where they were asked, a mean over images; thin bars are 95 % "
            "intervals. Grey: as many as in training."
        )
        shown.append(Shown(figures.filled(lines, 3), text))
    found = measured(k_max_lines(material.rows, SIDES))
    if found:
        shown.append(
            Shown(
                figures.forest(found, "$K_{max}$, the paper's rule"),
                "K_max of every run beside the paper's.",
            )
        )
    text = (
        "How K_max is told (an example): each square is one of eight images. K_max is the last K "
        "before the first cross."
    )
    shown.append(Shown(figures.rule(), text))
    return shown


def with_rule(shown: Sequence[Shown], none: str) -> str:
    """Figures, and K_max in words."""
    explained = "".join(f"<p>{html.escape(text)}</p>" for text in K_MAX_WORDS)
    return (
        f"<div class=figures>{''.join(map(drawn, shown))}<div class=small>{explained}</div></div>"
    )


def look_figures(material: Material) -> list[Shown]:
    shown = []
    maps = {
        name(side): kept
        for side in (EXP1, EXP2, Side("exp3"), EXP2L)
        if (kept := material.maps_of(side))
    }
    if maps:
        text = (
            "What one pixel of the denoised image (ring) looks at in the noisy one, bright: "
            "strongly; a cross for each of four conditions, as bright as it acts on that pixel. In "
            "a local model only the nearest cross is bright."
        )
        shown.append(Shown(figures.looks_at(maps), text, wide=True))
    sides = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
    near = lines_over(material.rows, sides, "locality/near_share")
    if near:
        chance = next((row.chance for _, rows in near.values() for row in rows), None)
        text = "Of what a condition changes, the share near its own place, over noise levels."
        shown.append(Shown(figures.over_noise(near, "share near the place", chance), text))
    square = lines_over(material.rows, sides, "locality/square")
    if square:
        text = (
            "The square around a pixel that holds 90 % of what it looks at: its side, a mean over "
            "pixels."
        )
        shown.append(Shown(figures.over_noise(square, "side of the square, pixels", None), text))
    points = locality.dots(material.rows)
    if points:
        text = (
            "Every dot is a model at a moment of its training: how far K_max exceeds training, and "
            "conditional locality."
        )
        shown.append(Shown(locality.scatter(points), text))
    return shown


def forced_figures(material: Material) -> list[Shown]:
    shown = []
    lines = lines_over(
        material.rows, (EXP2, MENDED, DISTILLED, EXP2L, Side("exp2l-wide"), EXP1), "length/found"
    )
    if lines:
        shown.append(
            Shown(
                figures.filled(lines, 3),
                "Objects drawn where they were asked, with and without forced locality.",
            )
        )
    found = measured(
        [Line(side, name(side), one(material.rows, side, "length/found", K=9)) for side in FORCED]
    )
    if found:
        text = (
            "Drawn of nine asked. Behind the names, in brackets: how far a condition is heard, in "
            "image sides."
        )
        shown.append(Shown(figures.forest(found, "drawn of 9 asked"), text))
    return shown + repair_figures(material.rows)


def repair_figures(rows: Sequence[Row]) -> list[Shown]:
    """Where repairs end, what predicts composition, and neighbourhoods that models find."""
    shown = []
    if where(rows, what="overlap/both"):
        text = (
            "Two places at a distance: images in which both are filled. Dashed: what the detector "
            "finds in real scenes; dotted: how much of an object lies in its own neighbourhood."
        )
        shown.append(Shown(repair.overlap_figure(rows), text))
    found = [row for row in rows if row.run in ("color", "text_control")]
    if where(found, intervention=["own", "peaks"]):
        text = (
            "Conditions without places: each heard where it acts most (own), or around a place of "
            "its own where it acts most (peaks)."
        )
        shown.append(Shown(repair.neighbourhood_figure(found), text, wide=True))
    if where(rows, what="predict/spearman"):
        text = (
            "Every dot is a run: what is known early in its training, and places filled in the "
            "end; on the right the rank correlation by noise level."
        )
        shown.append(Shown(repair.prediction_figure(rows), text, wide=True))
    return shown


def label_figures(material: Material) -> list[Shown]:
    shown = []
    sides = at_equal_images(POLICIES, material.rows)
    lines = lines_over(material.rows, sides, "length/found")
    labelled = {side: (f"{label}: {kind(side)}", rows) for side, (label, rows) in lines.items()}
    if lines:
        shown.append(
            Shown(
                figures.filled(labelled, 3),
                "Objects drawn where they were asked, by which objects were labelled, after equal "
                "numbers of training images.",
            )
        )
        found = k_max_lines(material.rows, sides)
        shown.append(
            Shown(
                figures.forest(found, "$K_{max}$, the paper's rule"),
                "K_max by label policy, beside Table 2.",
            )
        )
    return shown


def elsewhere_figures(material: Material) -> list[Shown]:
    shown = []
    lines = lines_over(material.rows, COLORS, "length/found")
    if lines:
        shown.append(Shown(figures.filled(lines, 5), "Colours asked for and drawn."))
    own = [row for row in material.rows if row.what.startswith("features/")]
    for run in dict.fromkeys(row.run for row in own):
        hidden = where(own, run=run, maps=["hidden", None])
        if any(row.index is not None for row in hidden):
            text = (
                f"{run}: mean cosine of the directions of concepts, from the first layer to the "
                "last."
            )
            figure = features.profile(hidden)
            shown.append(Shown(figure, text, wide=bool(figure.get_figwidth() > 6)))
        if where(hidden, part="mean", level="high") and where(hidden, what="features/within"):
            text = (
                f"{run}: cosines within and between categories, in parts of the network and in its "
                "output."
            )
            shown.append(Shown(features.spaces(hidden), text))
    for about, kept in material.matrices:
        named = features.level_matrices(kept, "high")
        if named:
            text = f"{about.get('run')}: cosines of every pair of concepts at high noise."
            shown.append(Shown(features.matrices(named, list(kept["concepts"])), text, wide=True))
    for about, kept in material.maps:
        if about.get("run") not in BY_NAME and about.get("states") != "noised":
            text = (
                f"{about.get('run')}: what pixels look at (rings, bright: strongly), and the "
                "conditions that act on them (crosses), from high noise to low."
            )
            shown.append(Shown(locality.heatmaps(kept), text, wide=True))
    texts = {row.run for row in where(own, what="features/share_in_third")}
    spoken = where(material.rows, what="locality/influence", run=list(texts))
    if spoken:
        text = "The influence of each word of a prompt at two places, from high noise to low."
        shown.append(Shown(features.words_over_time(spoken), text, wide=True))
    return shown


def theory_figures(material: Material) -> list[Shown]:
    shown = []
    for room, folder in material.toys.items():
        for figure, text in toy_figures(room, folder):
            shown.append(Shown(figure, f"{text}.", wide=bool(figure.get_figwidth() > 6)))
    circles = where(material.rows, what="circles/accuracy")
    if circles:
        longest = max(circles, key=lambda row: row.step or 0)
        some = where(circles, contrast=longest.contrast, seed=longest.seed)
        text = (
            "Circles drawn by a diffusion model along its training; contrast "
            f"{longest.contrast:g}, seed {longest.seed}."
        )
        shown.append(Shown(circles_figure(some), text, wide=True))
    return shown


def first_two(shown: Sequence[Shown], none: str) -> str:
    """The others are folded away."""
    rest = shown[2:]
    first = gallery(shown[:2], none)
    return first + (folded("More figures of theory", gallery(rest, "")) if rest else "")


def sure_figures(material: Material) -> list[Shown]:
    found = [
        Line(side, name(side), one(material.rows, side, "length/found", K=9)) for side in SEEDS
    ]
    shown = []
    if measured(found):
        text = "The same experiment trained from another seed: drawn of nine asked."
        shown.append(Shown(figures.forest(found, "drawn of 9 asked"), text))
    local = [
        Line(side, name(side), one(material.rows, side, "locality/conditional_locality"))
        for side in SEEDS
    ]
    if measured(local):
        text = "The same: conditional locality."
        shown.append(Shown(figures.forest(local, "conditional locality"), text))
    return shown


# ----------------------------------------------------------------------------
# The sections.


def of_rooms(rows: Sequence[Row], *rooms: str) -> list[Row]:
    return [row for row in rows if row.what.startswith(tuple(f"{room}/" for room in rooms))]


def of_runs(rows: Sequence[Row], sides: Sequence[Side]) -> list[Row]:
    return where(of_rooms(rows, "length"), run=list({side.run for side in sides}))


def every(rows: Sequence[Row]) -> str:
    return folded(f"All {len(rows):,} numbers, by run", tables.every_number(rows)) if rows else ""


def known_sides(material: Material, what: str = "length/k_max") -> list[Side]:
    """The study's runs, then all others that this was measured of: score machines, runs of one's
    own."""
    others = dict.fromkeys(row.run for row in where(material.rows, what=what) if row.run)
    return [*SIDES, *(Side(run) for run in others if run not in BY_NAME)]


def no_rows(material: Material) -> list[Row]:
    return []


THEORY_TITLES = {"theory": "The paper's theory", "sim": "Structured Identity Mapping"}


def theory_tables(material: Material) -> dict[str, Table]:
    return {title: tables.claim_table(material.rows, room) for room, title in THEORY_TITLES.items()}


def sure_tables(material: Material) -> dict[str, Table]:
    sides = known_sides(material)
    return {
        "Comparisons": tables.comparisons(material.rows),
        "Seeds": tables.lengths(material.rows, SEEDS),
        "Other tolerances": tables.tolerances(material.rows, sides),
        "The detector's own error": tables.detector(material.rows, sides),
    }


def not_so(material: Material) -> str:
    lines = words.not_so(material.rows, SIDES)
    if not lines:
        return missing("Nothing that was measured came out otherwise.")
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return (
        f"<details open><summary>What did not come out ({len(lines)})</summary><ul "
        f"class=small>{items}</ul></details>"
    )


SECTIONS = (
    Section(
        "compose",
        "Does it compose?",
        "A model that saw at most three objects draws up to nine when all their places are "
        "labelled on a grid, and fails with a single label or a list of places. The paper counted "
        "eight images by eye; here a detector counts.",
        compose_figures,
        "",
        lambda m: [words.composes(m.rows, SIDES)],
        lambda m: {"": tables.lengths(m.rows, known_sides(m))},
        lambda m: of_rooms(m.rows, "length"),
        arranged=with_rule,
        beside=lambda m: folded("Images of every model", sheets(m)),
    ),
    Section(
        "look",
        "Why: where does the score look?",
        "Models that compose have a score that is local: a pixel looks at pixels near it, and "
        "hears conditions near it.",
        look_figures,
        "Where scores look is not measured; composcope locality exp1 does it.",
        lambda m: [words.looks(m.rows)],
        lambda m: {"": tables.localities(m.rows, known_sides(m, "locality/square"))},
        lambda m: of_rooms(m.rows, "locality"),
    ),
    Section(
        "forced",
        "What if it is forced to be local?",
        "A network that sees patches and the conditions inside them composes where the global one "
        "failed. Local conditions at sampling time, without training, are ours.",
        forced_figures,
        "Not measured; composcope evaluate exp2 --intervention local does it.",
        lambda m: [words.forced(m.rows), *words.repaired(m.rows)],
        lambda m: {"": tables.lengths(m.rows, FORCED)},
        lambda m: [r for r in of_runs(m.rows, FORCED) if r.intervention or r.run != "exp2"],
        beside=walks,
    ),
    Section(
        "labels",
        "Which labels?",
        "The fewer objects of a training image are labelled, the less far a model composes (Table "
        "2).",
        label_figures,
        "Not measured; composcope reproduce --only exp1 random drop-one exp2 does it.",
        lambda m: [words.policies(m.rows)],
        lambda m: {"": tables.lengths(m.rows, at_equal_images(POLICIES, m.rows))},
        lambda m: of_runs(m.rows, POLICIES[1:3]),
    ),
    Section(
        "elsewhere",
        "Colours and words: is it local elsewhere?",
        "Colours have no place, yet compose in part; inside the network their directions are "
        "nearly orthogonal. In SDXL "
        "pixels are local, conditions are not, and concepts separate in feature space.",
        elsewhere_figures,
        "Not measured; composcope features color does it.",
        lambda m: words.elsewhere(m.rows),
        lambda m: {
            "How far colours compose": tables.lengths(m.rows, COLORS),
            "How alike concepts are": tables.cosines(m.rows),
        },
        lambda m: of_rooms(m.rows, "features"),
    ),
    Section(
        "theory",
        "What does theory say?",
        "A conditional projective composition has exactly a local conditional score (Lemma 1), and "
        "near one the error is bounded (Lemma 2).",
        theory_figures,
        "Not measured; composcope theory and composcope sim do it.",
        lambda m: [words.theory(m.rows)],
        theory_tables,
        lambda m: of_rooms(m.rows, "circles"),
        arranged=first_two,
    ),
    Section(
        "sure",
        "How sure are we?",
        "The paper gives no intervals and one seed a run.",
        sure_figures,
        "Seeds are not measured.",
        lambda m: [words.sure(m.rows)],
        sure_tables,
        no_rows,
        after=not_so,
    ),
)


def numbers(shown: Section, material: Material) -> str:
    """Its tables, each under its title, and every row behind them."""
    parts = []
    for title, table in shown.tables(material).items():
        heading = f"<h3>{html.escape(title)}</h3>" if title else ""
        parts.append(f"{heading}{table}")
    return "".join(parts) + every(shown.every(material))


def section(shown: Section, material: Material) -> str:
    answers = "".join(
        f"<p class=answer>{html.escape(answer)}</p>" for answer in shown.answer(material)
    )
    pictures = shown.arranged(shown.figures(material), shown.none) + shown.beside(material)
    return (
        f"<section id={shown.name}><h2>{html.escape(shown.question)}</h2>"
        "<p class=small><b>The paper:</b> "
        f"{html.escape(shown.paper)}</p>{pictures}{answers}{shown.after(material)}"
        f"{folded('Numbers, intervals and commands', numbers(shown, material))}</section>"
    )
