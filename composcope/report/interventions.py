"""How interventions are shown, in figures and in words: where they end (overlap), what predicts
composition, neighbourhoods that models find themselves. Functions of rows.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from composcope.report.drawing import legend
from composcope.report.figures import FROM_NOISE, WIDTH, met_panel
from composcope.report.locality import over
from composcope.report.looks import BLUE, GREEN, VERMILLION, Look, by_model, label, look
from composcope.report.marks import EXP2_LOCAL, and_list, name, two, with_interval
from composcope.report.material import Kept, conditional, of_nine
from composcope.report.students import student
from composcope.results import Row, grouped, where, with_value
from composcope.study.effects import Side
from composcope.study.prediction import LOCALITY, LOSS, NOTHING, points
from composcope.study.table import BY_NAME, PENALTY_RUNS

# Neighbourhoods that a model finds itself: of one condition for each pixel, and of all conditions.
REGIONS = ("clusters", "words", "everywhere")
FOUND = ("own", "peaks", *REGIONS)
FOUND_WORDS = (
    "Each pixel is given the condition that acts most on it (own), or each condition acts around "
    "the place where it acts most (peaks). Or every pixel is given all conditions, and the image "
    "is cut into regions, in each of which one condition counts twice (clusters). For comparison, "
    "all count twice at every pixel (everywhere). Words of a prompt that act alike can be taken "
    "for one condition (words)."
)
SMALL_RUN = Look("0.55", "o")  # runs that are not of the study have no look of their own


def overlap_figure(rows: Sequence[Row]) -> Figure:
    """Images with both of two objects by their distance; grey: what is known without a model."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    panel = figure.add_subplot(xlabel="distance of two places, image sides")
    panel.set_ylabel("share of images with both filled")
    both = where(rows, what="overlap/both")
    for style, words, own in by_model([row for row in both if row.run != "scenes"]):
        over(panel, own, "distance", style, words)
    known = {
        "found in rendered scenes": (where(both, run="scenes"), "--"),
        "share of an object near its place": (where(rows, what="overlap/inside"), ":"),
    }
    for words, (own, dashes) in known.items():
        if own:
            points = sorted((row.distance or 0, row.estimate.value) for row in own)
            panel.plot(*zip(*points, strict=True), dashes, color="gray", lw=1.4, label=words)
    for row in where(rows, what="overlap/one_patch"):
        panel.axvline(float(row.value or 0), color=look(row.run).color, ls=":", lw=1)
    panel.axhline(0.5, color="gray", lw=0.6)
    panel.set_ylim(-0.03, 1.03)
    legend(panel)
    return figure


def close_figure(pictures: Sequence[Kept]) -> Figure:
    """What models draw at two places (dots) that come closer: a row a model, from near to far."""
    columns = max(len(arrays["distances"]) for _, arrays in pictures)
    size = (1.0 * columns + 1.3, 1.05 * len(pictures) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(pictures), columns, squeeze=False)
    for panels, (about, arrays) in zip(grid, pictures, strict=True):
        for panel in panels:
            panel.axis("off")
        side = arrays["images"].shape[1]
        shown = zip(panels, arrays["images"], arrays["asked"], arrays["distances"], strict=False)
        for panel, image, asked, distance in shown:
            panel.imshow(image, interpolation="nearest")
            panel.plot(*(asked * side - 0.5).T, ".", color="red", ms=3)
            panel.set_title(f"{distance:g}" if panel in grid[0] else "", fontsize=9)
        words = label(about["run"], about.get("intervention"))
        where_to = {"xytext": (-6, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
        panels[0].annotate(words, (0, 0.5), xycoords="axes fraction", fontsize=8, **where_to)
    return figure


def prediction_figure(rows: Sequence[Row]) -> Figure:
    """Early locality and loss against places filled in the end; correlations by noise level."""
    figure = Figure(figsize=(10.4, 3.6), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    for panel, known in ((first, LOCALITY), (second, LOSS)):
        for point in points(rows, known):
            of_study = point.run in BY_NAME
            style = look(point.run) if of_study else SMALL_RUN
            named = point.run if of_study else "small runs"
            at = (point.early, point.final)
            panel.plot(*at, style.marker, color=style.color, ms=5, alpha=0.8, label=named)
        panel.set(xlabel=f"early {known}", ylabel="places filled of 6 in the end")
        for row in where(rows, what="predict/spearman", concept=known, sigma=None)[-1:]:
            panel.set_title(f"rank correlation {with_interval(row)}", fontsize=9)
    levels = [row for row in where(rows, what="predict/spearman", concept=LOCALITY) if row.sigma]
    third.set(xlabel=FROM_NOISE, ylabel="rank correlation", xscale="log", ylim=(-1.05, 1.05))
    if levels:
        over(third, levels, "sigma", Look("C0", "o"), "")
        third.invert_xaxis()
    third.axhline(0, color="gray", lw=0.6)
    handles, names = first.get_legend_handles_labels()
    once = dict(zip(names, handles, strict=True))
    if once:
        figure.legend(once.values(), once, loc="outside upper left", ncols=8, fontsize=8)
    return figure


def penalty_figure(rows: Sequence[Row]) -> Figure:
    """Short trainings with a penalty on far influence: conditional locality and places filled, by
    the weight of the penalty and by the radius beyond which it is far."""
    figure = Figure(figsize=(2.2 * WIDTH, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    local = where(rows, what="penalty/conditional_locality")
    shown = {
        ("conditional locality, K = 1", 1.05): where(local, K=1),
        ("conditional locality, K = 4", 1.05): where(local, K=4),
        ("places filled of 6", 6.3): where(rows, what="penalty/found", K=6),
    }
    styles = (Look(BLUE, "o"), Look(VERMILLION, "v"), Look(GREEN, "^"))
    for panel, ((axis, most), own) in zip(panels, shown.items(), strict=True):
        by_radius = grouped(own, lambda row: row.radius or 0.0)
        for style, (radius, some) in zip(styles, sorted(by_radius.items()), strict=False):
            over(panel, some, "penalty", style, f"beyond {radius:g} of the image")
        panel.set(xlabel="weight of the penalty in training (0: none)", ylabel=axis)
        panel.set_xscale("symlog", linthresh=0.03)
        panel.set_xlim(-0.01, 1.5)
        panel.set_ylim(0, most)
    legend(panels[0])
    return figure


def neighbourhood_figure(rows: Sequence[Row]) -> Figure:
    """Colours and phrases that are met, as the model is and with neighbourhoods of its own."""
    kinds = {"length/found": "colours", "text/found": "phrases"}
    shown = {noun: own for what, noun in kinds.items() if (own := where(rows, what=what))}
    figure = Figure(figsize=(0.8 * WIDTH * max(len(shown), 1), 3.7), layout="constrained")
    panels = figure.subplots(1, max(len(shown), 1), squeeze=False)[0]
    for panel, (noun, own) in zip(panels, shown.items(), strict=False):
        met_panel(panel, by_model(own), noun)
    return figure


# In words.


def beyond(rows: Sequence[Row]) -> list[str]:
    """What was tried further, of what is measured."""
    parts = [
        student(rows),
        penalised(rows),
        overlap_answer(rows),
        prediction_answer(rows),
        own_places(rows),
    ]
    return [part for part in parts if part]


def penalised(rows: Sequence[Row]) -> str:
    parts = []
    for run, both in PENALTY_RUNS.items():
        without, penalty = map(Side, both)
        filled = of_nine(rows, penalty)
        if filled is None:
            continue
        plain = with_interval(of_nine(rows, without))
        shares = [with_interval(conditional(rows, side)) for side in (penalty, without)]
        parts.append(
            f"Trained further with it, {run} fills {with_interval(filled)} of nine places (without "
            f"it {plain}), and its conditional locality is {shares[0]} (without it {shares[1]})."
        )
    if not parts:
        return ""
    beside = f"For comparison, {name(EXP2_LOCAL)} fills {with_interval(of_nine(rows, EXP2_LOCAL))}."
    return (
        "Does a penalty on what conditions change far from their places make a model local, and "
        f"does it then compose? {' '.join(parts)} {beside}"
    )


def overlap_answer(rows: Sequence[Row]) -> str:
    fails = where(rows, what="overlap/fails")
    if not fails:
        return ""
    parts = [f"{with_interval(row)} ({label(row.run, row.intervention)})" for row in fails]
    return (
        "How close may two places be? Models still fill both in at least half of the images down "
        f"to these distances, in image sides: {and_list(parts)}."
    )


def prediction_answer(rows: Sequence[Row]) -> str:
    found = {row.concept: row for row in where(rows, what="predict/spearman") if row.sigma is None}
    if not found:
        return ""
    errors = {row.concept: row for row in where(rows, what="predict/error")}
    parts = [f"{with_interval(row)} for the early {known}" for known, row in found.items()]
    missed = []
    for known, row in errors.items():
        by = "the mean of the others" if known == NOTHING else f"the early {known}"
        missed.append(f"{with_interval(row)} places from {by}")
    runs = [point.run for point in points(rows, LOCALITY)]
    own = [run for run in runs if run in BY_NAME]
    small = [f"{len(runs) - len(own)} small ones"] if len(runs) > len(own) else []
    error = f" The prediction for a run left out is off by {and_list(missed)}." if missed else ""
    return (
        "How well does an early measurement predict the places filled of six in the end? The rank "
        f"correlation over {len(runs)} runs ({and_list([*small, *own])}) is "
        f"{and_list(parts)}.{error}"
    )


def beside_plain(shown: Mapping[str | None, Row]) -> str:
    """Which ways draw fewer or more than the model as it is, by intervals that are apart."""
    plain = shown.get(None)
    if plain is None:
        return ""
    low, high = plain.estimate.ends
    known = [(way, row.estimate.ends) for way, row in shown.items() if way is not None]
    fewer = [way for way, ends in known if ends[1] < low]
    more = [way for way, ends in known if ends[0] > high]
    said = [f"{n} with {and_list(ways)}" for n, ways in (("fewer", fewer), ("more", more)) if ways]
    return f": {', '.join(said)}" if said else ": none is apart from it"


def placeless(rows: Sequence[Row]) -> list[Row]:
    """Of models whose conditions have no places: as they are, and local in ways of their own."""
    return where(rows, run=["color", "text_control"], intervention=[None, *FOUND])


def own_places(rows: Sequence[Row]) -> str:
    parts = []
    for room, run, noun in (("length", "color", "colours"), ("text", "text_control", "phrases")):
        own = with_value(where(placeless(rows), what=f"{room}/found", run=run))
        if not {row.intervention for row in own} & {*FOUND}:
            continue
        most = max(row.K or 0 for row in own)
        shown = {row.intervention: row for row in own if most == row.K}
        each = [f"{with_interval(row)} ({way or 'as it is'})" for way, row in shown.items()]
        drawn = where(rows, what=f"{room}/drawn", run=run, K=most, intervention=[None, *REGIONS])
        counts = [f"{two(row.value)} ({row.intervention or 'as it is'})" for row in drawn]
        objects = f" Its images have {and_list(counts)} objects in all." if counts else ""
        asked = f"Of {most} {noun} {run} draws {and_list(each)}"
        parts.append(f"{asked}{beside_plain(shown)}.{objects}")
    said = ["Can conditions without places be made local too?", FOUND_WORDS, *parts]
    return " ".join(said) if parts else ""
