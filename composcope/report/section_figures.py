"""The figures of each section of the page, with the words under them: functions of the material; of
what is not measured there is none."""

from collections.abc import Callable, Sequence
from typing import Any

from composcope.report import features, figures, interventions, locality
from composcope.report.figures import Line
from composcope.report.marks import (
    DISTILLED,
    EXP1,
    EXP2,
    EXP2_LOCAL,
    EXP2L,
    POLICIES,
    kind,
    name,
    paper_of,
)
from composcope.report.material import Material, of_rooms, of_side, one
from composcope.report.pictures import Shown
from composcope.report.theory import circles_figure, toy_figures
from composcope.results import Row, grouped, where
from composcope.study.effects import Side, at_equal_images
from composcope.study.table import BY_NAME, INTERVENTIONS, RUNS, STUDENT

SIDES = tuple(Side(run.name) for run in RUNS)
MAIN = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
WIDE = Side("exp2l-wide")
AT_SAMPLING = tuple(Side("exp2", some) for some in INTERVENTIONS)
PENALISED = tuple(Side(f"exp2-{name}") for name in ("longer", "penalty"))
FORCED = (EXP2, *AT_SAMPLING, DISTILLED, *PENALISED, EXP2L, WIDE)
COLORS = (Side("color"), Side("color-three"))
SEEDED = sorted({run.experiment for run in RUNS if "seed" in run.changes})
SEEDS = tuple(  # each experiment that has several, with all of them
    Side(run.name)
    for experiment in SEEDED
    for run in RUNS
    if run.experiment == experiment and {*run.changes} <= {"seed"}
)
Lines = dict[Side, tuple[str, list[Row]]]


# ----------------------------------------------------------------------------
# Figures that several sections have.


def lines_over(
    rows: Sequence[Row], sides: Sequence[Side], what: str, label: Callable[[Side], str] = name
) -> Lines:
    found = {side: (label(side), of_side(rows, side, what)) for side in sides}
    return {side: line for side, line in found.items() if line[1]}


def filled(lines: Lines, trained: int | None, words: str, noun: str = "places") -> list[Shown]:
    """Places filled over places asked for."""
    return [Shown(figures.met(lines, trained, noun), words)] if lines else []


def over_noise(lines: Lines, axis: str, words: str, chance: float | None = None) -> list[Shown]:
    return [Shown(figures.over_noise(lines, axis, chance), words)] if lines else []


def lines_of(rows: Sequence[Row], sides: Sequence[Side], what: str, **at: Any) -> list[Line]:
    return [Line(side, one(rows, side, what, **at)) for side in sides]


def k_max_lines(rows: Sequence[Row], sides: Sequence[Side]) -> list[Line]:
    ours = ((side, one(rows, side, "length/k_max", rule="paper")) for side in sides)
    return [Line(side, row, paper_of(side)) for side, row in ours]


def measured(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.row is not None]


def forest(lines: Sequence[Line], axis: str, words: str) -> list[Shown]:
    """A line a model, unless none is measured."""
    return [Shown(figures.forest(lines, axis), words)] if measured(lines) else []


# ----------------------------------------------------------------------------
# The figures of each section.

RULE = "$K_{max}$, the paper's rule"
NINE = "places filled of 9"
NEAR = "share of the effect near the place"


def compose_figures(material: Material) -> list[Shown]:
    rows = material.rows
    drawn = (
        "A place is filled if an object was drawn there; means over images, thin bars are 95 % "
        "intervals. Grey: as many objects as in training."
    )
    reached = "K_max of every run beside the paper's."
    example = (
        "How K_max is found, by an example: each square is one of eight images, by how many of the "
        "K objects it shows. K_max is the last K before the first cross."
    )
    return [
        *filled(lines_over(rows, MAIN, "length/found"), 3, drawn),
        *forest(measured(k_max_lines(rows, SIDES)), RULE, reached),
        Shown(figures.rule(), example),
    ]


def look_figures(material: Material) -> list[Shown]:
    rows = material.rows
    sides = (EXP1, EXP2, Side("exp3"), EXP2L)
    maps = {name(side): kept for side in sides if (kept := material.maps_of(side))}
    shown = []
    if maps:
        text = (
            "What one pixel of the denoised image (ring) looks at in the noisy image: the brighter, "
            "the more. The crosses are four places asked for: the brighter, the more that condition "
            "acts on the pixel. In a local model only the nearest cross is bright."
        )
        shown.append(Shown(figures.looks_at(maps), text, wide=True))
    near = lines_over(rows, MAIN, "locality/near_share")
    chance = next((row.chance for _, own in near.values() for row in own), None)
    text = "Of what a condition changes in the image, the share near its own place."
    shown += over_noise(near, NEAR, text, chance)
    text = (
        "How far a pixel looks: the side of the square around it that holds 90 % of what it looks "
        "at, a mean over pixels."
    )
    square = lines_over(rows, MAIN, "locality/square")
    shown += over_noise(square, "side of the square, pixels", text)
    points = locality.dots(rows)
    if points:
        text = (
            "Every dot is a model, the smaller dots are earlier in its training. Conditional "
            "locality is the share of a condition's effect near its place, over all noise levels."
        )
        shown.append(Shown(locality.scatter(points), text))
    return shown


def forced_figures(material: Material) -> list[Shown]:
    rows = material.rows
    lines = lines_over(rows, (EXP2, EXP2_LOCAL, DISTILLED, EXP2L, WIDE, EXP1), "length/found")
    drawn = "Places filled, with and without forced locality."
    nine = (
        "Places filled of nine. In brackets, where it is not the usual one: how far from its place "
        "a condition acts, in image sides."
    )
    found = measured(lines_of(rows, FORCED, "length/found", K=9))
    return [*filled(lines, 3, drawn), *forest(found, NINE, nine), *intervention_figures(rows)]


def intervention_figures(rows: Sequence[Row]) -> list[Shown]:
    """Where interventions end, what predicts composition, and neighbourhoods that models find."""
    shown = []
    if where(rows, what="overlap/both"):
        text = (
            "Two places that come closer: the share of images in which both are filled. Dashed: what "
            "the detector finds in rendered scenes. Dotted: the share of an object that lies nearer "
            "to its own place than to the other."
        )
        shown.append(Shown(interventions.overlap_figure(rows), text))
    swept = where(rows, what=["penalty/found", "penalty/conditional_locality"])
    if swept:
        text = (
            "exp2 trained a little further with a penalty on what a condition changes far from its "
            "place."
        )
        shown.append(Shown(interventions.penalty_figure(swept), text, wide=True))
    found = [row for row in rows if row.run in ("color", "text_control")]
    if where(found, intervention=["own", "peaks"]):
        text = (
            "Conditions without places. Each pixel is given the condition that acts most on it "
            "(own), or each condition acts around the place where it acts most (peaks)."
        )
        shown.append(Shown(interventions.neighbourhood_figure(found), text, wide=True))
    if where(rows, what="predict/spearman"):
        text = (
            "Every dot is a run: a measurement early in its training, and the places it fills in the "
            "end. Right: the rank correlation of early locality by noise level."
        )
        shown.append(Shown(interventions.prediction_figure(rows), text, wide=True))
    return shown


def label_figures(material: Material) -> list[Shown]:
    rows = material.rows
    sides = at_equal_images(POLICIES, rows)
    lines = lines_over(rows, sides, "length/found", lambda side: f"{name(side)}: {kind(side)}")
    drawn = "Places filled, by which objects were labelled, after equal numbers of training images."
    reached = "K_max by label policy, beside Table 2."
    return [*filled(lines, 3, drawn), *forest(k_max_lines(rows, sides), RULE, reached)]


def elsewhere_figures(material: Material) -> list[Shown]:
    lines = lines_over(material.rows, COLORS, "length/found")
    shown = filled(lines, 5, "Colours asked for and drawn.", "colours")
    own = of_rooms(material.rows, "features")
    for run, some in grouped(own, lambda row: row.run).items():
        hidden = where(some, maps=["hidden", None])
        if any(row.index is not None for row in hidden):
            text = (
                f"{run}: how alike the directions of concepts are, from the first layer to the last. "
                "Thin bars are 95 % intervals."
            )
            shown.append(maybe_wide(features.profile(hidden), text))
        if where(hidden, part="mean", level="high") and where(hidden, what="features/within"):
            text = (
                f"{run}: how alike the directions of concepts are, within and between categories, in "
                "parts of the network and in its output."
            )
            shown.append(Shown(features.spaces(hidden), text))
    for about, kept in material.matrices:
        if features.level_matrices(kept, "high"):
            text = f"{about.get('run')}: cosine of every two concepts in each layer, at high noise."
            shown.append(Shown(features.level_figure(kept, "high", ""), text, wide=True))
    for about, kept in material.maps:
        if about.get("run") not in {*BY_NAME, STUDENT} and about.get("states") != "noised":
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


def maybe_wide(figure: Any, text: str) -> Shown:
    """A figure of several panels has a line of its own."""
    return Shown(figure, text, wide=bool(figure.get_figwidth() > 6))


def theory_figures(material: Material) -> list[Shown]:
    toys = [toy for room, folder in material.toys.items() for toy in toy_figures(room, folder)]
    shown = [maybe_wide(figure, f"{text}.") for figure, text in toys]
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


def sure_figures(material: Material) -> list[Shown]:
    rows = material.rows
    sides = at_equal_images(SEEDS, rows)
    nine = lines_of(rows, sides, "length/found", K=9)
    local = lines_of(rows, sides, "locality/conditional_locality")
    text = "The same training from other seeds, after equal numbers of images: places filled."
    same = "The same: conditional locality."
    return [*forest(nine, NINE, text), *forest(local, "conditional locality", same)]
