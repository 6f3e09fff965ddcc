"""Tables of the page: every number with its interval and the command that makes it again."""

import html
from collections.abc import Callable, Sequence
from itertools import groupby

from composcope.report.cells import Html, Line, Table, command_cell, html_table
from composcope.report.commands import command
from composcope.report.features import COSINES, NOISE, by_part
from composcope.report.figures import look_of
from composcope.report.marks import (
    and_list,
    kind,
    name,
    paper_of,
    paper_words,
    two,
    verdict,
    with_interval,
)
from composcope.report.material import (
    conditional,
    k_max_beside_paper,
    k_max_row,
    of_nine,
    of_rooms,
    of_side,
    one,
)
from composcope.results import Row, grouped, where
from composcope.study.effects import HIGH_NOISE, LOW_NOISE, MIDDLE_NOISE, Side, mean_row
from composcope.study.table import BY_NAME, INTERVENTIONS, STUDENT, Intervention, trained_on


def if_known(row: Row | None) -> str:
    return with_interval(row) if row else ""


def swatch(side: Side) -> Html:
    dot = f'<i class=dot style="background:{look_of(side).color}"></i>'
    return Html(f"{dot}<b>{html.escape(name(side))}</b>")


# How far models compose.


LENGTH_WORDS = (
    "K_max is by the paper's rule on all of our images, and on eight, as many as the paper "
    "counted. Where labels leave objects out, a model adds extra ones; by places alone these are "
    "counted but not judged, and where that is measured it is what we compare with the paper. "
    "Strict is our own rule. Filled of 9: how many of nine places get their object. Drawn at "
    "K = 0: objects drawn when none is asked for. Machines are not trained: they draw by averaging "
    "10,000 training images; each is judged on 24 images for each K. What is blank is not measured."
)


def lengths(rows: Sequence[Row], sides: Sequence[Side], note: str = "") -> Table:
    """K_max beside the paper's, a line a model."""
    return html_table((length_line(rows, side) for side in sides), note)


def length_line(rows: Sequence[Row], side: Side) -> Line:
    run = None if side.intervention else BY_NAME.get(side.run)
    paper = paper_of(side)
    reached = k_max_row(rows, side)
    drawn = if_known(one(rows, side, "length/drawn", K=0))
    if run and run.paper_none_asked and drawn:
        drawn += f"; paper {paper_words(run.paper_none_asked)}"
    calls = one(rows, side, "length/evaluations")
    again = f"composcope reproduce --only {side.run}" if side.run in BY_NAME else ""
    return {
        "run": swatch(side),
        "trained on": trained_on(run.config()) if run else kind(side),
        "K_max [95 %]": with_interval(reached),
        "the paper": paper_words(paper),
        "agrees?": verdict(k_max_beside_paper(rows, side), paper),
        "K_max by places alone [95 %]": by_places(rows, side),
        "K_max on 8 images [95 %]": if_known(k_max_row(rows, side, "eight")),
        "K_max, strict [95 %]": if_known(k_max_row(rows, side, "strict")),
        "filled of 9 [95 %]": if_known(of_nine(rows, side)),
        "training images": trained_images(reached),
        "drawn at K = 0": drawn,
        "network calls a step": two(calls.value) if calls and calls.value != 1 else "",
        "command": command_cell(command([reached]) if reached else again),
    }


def trained_images(row: Row | None) -> str:
    """A student learned from its teacher."""
    return "" if row is None or row.images is None or row.run == STUDENT else f"{row.images:,}"


def by_places(rows: Sequence[Row], side: Side) -> str:
    """K_max and the most extras of an image up to there: "9 [8, 9], up to 2 extras"."""
    reached = k_max_row(rows, side, "places")
    if reached is None:
        return ""
    up_to = range(1, max(int(reached.estimate.value), 1) + 1)
    extras = [row.estimate.value for row in of_side(rows, side, "length/most_extra", K=[*up_to])]
    told = f", up to {max(extras):.0f} extras" if extras else ""
    return with_interval(reached) + told


# What each intervention does, by its name on the command line.
GIVEN = {
    "local": "each pixel is given the nearest condition within the radius",
    "guided": "the same under guidance: the effect of that condition counts twice",
    "smooth": "local, with blurred borders",
    "annealed": "local, with a radius that shrinks with the noise",
    "own": "each pixel is given the condition that acts most on it",
    "composed": "the scores of single conditions are added up, less those of nothing asked for",
    "everything": "guidance alone: the effect of all conditions together counts twice",
}


def interventions(rows: Sequence[Row]) -> Table:
    """What is done to exp2 at sampling time, and what it then fills."""
    return html_table(intervention_line(rows, done) for done in (None, *INTERVENTIONS))


def intervention_line(rows: Sequence[Row], done: Intervention | None) -> Line:
    side = Side("exp2", done)
    filled = of_nine(rows, side)
    reached = k_max_row(rows, side)
    calls = one(rows, side, "length/evaluations")
    again = "composcope reproduce --only exp2"
    return {
        "model": swatch(side),
        "what is done": GIVEN[done.name] if done else "nothing",
        "radius, image sides": two(done.radius) if done and done.radius is not None else "",
        "filled of 9 [95 %]": with_interval(filled),
        "K_max by places alone [95 %]": by_places(rows, side),
        "K_max, strict [95 %]": if_known(k_max_row(rows, side, "strict")),
        "images for each K": str(filled.n) if filled and filled.n else "",
        "network calls a step": two(calls.value) if calls else "",
        "command": command_cell(command([reached]) if reached else again),
    }


def tolerances(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """K_max of every run at every tolerance it was judged at."""
    lines: list[Line] = []
    for side in sides:
        judged = [row for row in where(rows, run=side.run) if row.K is not None]
        known = sorted({row.tolerance for row in judged if row.tolerance is not None})
        for tolerance in known if len(known) > 1 else ():
            found = one(rows, side, "length/k_max", rule="paper", tolerance=tolerance)
            if found:
                nine = one(rows, side, "length/found", K=9, tolerance=tolerance)
                line: Line = {"run": swatch(side), "tolerance, image sides": two(tolerance)}
                line |= {"K_max [95 %]": with_interval(found), "filled of 9 [95 %]": if_known(nine)}
                lines.append({**line, "command": command_cell(command([found]))})
    return html_table(lines)


WAYS = {"paper": "the paper's", "random": "random"}


def other_places(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """Runs that were asked for random places beside the paper's, a line for each."""
    lines: list[Line] = []
    for side in sides:
        found = {way: of_side(rows, side, "length/exact", asked=way) for way in WAYS}
        for way, exact in found.items() if all(found.values()) else ():
            strict = one(rows, side, "length/k_max", rule="strict", asked=way)
            nine = one(rows, side, "length/found", K=9, asked=way)
            line: Line = {"run": swatch(side), "places": WAYS[way]}
            line["share of images that are right"] = "; ".join(by_number(exact, whole_percent))
            line |= {"K_max, strict [95 %]": if_known(strict), "filled of 9 [95 %]": if_known(nine)}
            images = exact[0].images
            line["training images"] = f"{images:,}" if images else ""
            lines.append({**line, "command": command_cell(command(exact))})
    note = (
        "The paper asks each model for the same places, and the second of them is near the "
        "horizon, where few training images have an object. Random places are those of a new "
        "scene of as many small objects. The intervals of the shares: composcope rows "
        "--where what=length/exact --csv."
    )
    return html_table(lines, note)


def whole_percent(row: Row) -> str:
    return f"{row.value:.0%}".replace("%", " %")


def detector(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """The share of failures that the detector's own error may explain, by K."""
    measured = {side: of_side(rows, side, "length/error") for side in sides}
    lines = (
        {
            "run": swatch(side),
            "share of images": "; ".join(by_number(own)),
            "command": command_cell(command([*own, *of_side(rows, side, "length/found")])),
        }
        for side, own in measured.items()
        if own
    )
    note = (
        "The detector misreads some images that show exactly what is asked. This share of an "
        "evaluation's images may fail for that reason alone, and K_max allows for it."
    )
    return html_table(lines, note)


def by_number(rows: Sequence[Row], value: Callable[[Row], str] = with_interval) -> list[str]:
    """ "0.25 at K = 3", "0 at K = 4 to 12": numbers with one value after another as one."""
    ordered = sorted(rows, key=lambda row: row.K or 0)
    # Numbers that follow each other are as far from their positions.
    at = [(value(row), row.K or 0, (row.K or 0) - i) for i, row in enumerate(ordered)]
    words = []
    for (said, _), some in groupby(at, key=lambda one: (one[0], one[2])):
        Ks = [K for _, K, _ in some]
        words.append(f"{said} at K = {Ks[0]}" + (f" to {Ks[-1]}" if len(Ks) > 1 else ""))
    return words


# Where scores look, and how alike concepts are inside a network.


def localities(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """Conditional locality, and the side of the square a pixel looks at, a line a model."""
    lines: list[Line] = []
    for side in sides:
        share = conditional(rows, side)
        squares = of_side(rows, side, "locality/square")
        if share is None and not squares:
            continue
        line: Line = {"run": swatch(side), "conditional locality [95 %]": if_known(share)}
        line["chance"] = two(share.chance) if share and share.chance else ""
        for band in (HIGH_NOISE, MIDDLE_NOISE, LOW_NOISE):
            inside = [row for row in squares if (row.sigma or 0) in band]
            mean = with_interval(mean_row(inside)) if inside else ""
            line[f"square in pixels{band.words} [95 %]"] = mean
        lines.append({**line, "command": command_cell(command([share] if share else squares))})
    note = (
        "Square: the side of the smallest square around a pixel that holds 90 % of what it looks "
        "at. High noise is sigma of 10 and more, low noise less than 0.3."
    )
    if {side.run for side in sides} & {*PLAIN_IMAGES}:
        told = and_list([f"{run} ({words})" for run, words in PLAIN_IMAGES.items()])
        note += f" As in the paper's Figure 12, two models are asked for nothing: {told}."
    return html_table(lines, note)


# Of experiments/centred_subject: what its models draw.
PLAIN_IMAGES = {
    "centred": "one large object in the middle of every image",
    "cifar10": "small photographs",
}


def cosine_table(rows: Sequence[Row]) -> Table:
    """Mean cosines of the directions of concepts, a line a run, part and noise level."""
    known = [row for row in of_rooms(rows, "features") if row.run]
    lines: list[Line] = []
    for run, own in grouped(known, lambda row: row.run).items():
        for (maps, layer, level), found in by_part(own).items():
            part = f"{layer} ({maps})" if maps else layer
            line: Line = {"run": str(run), "part of the network": part}
            line["noise"] = NOISE.get(str(level), str(level or ""))
            line |= {f"{name} [95 %]": if_known(found.get(name)) for name in COSINES}
            lines.append({**line, "command": command_cell(command(list(found.values())))})
    note = (
        "A concept's direction is the mean activation with it less the mean without. Between: the "
        "mean cosine of the directions of different concepts, or of different categories of them. "
        "Within: of concepts of one category. Ratio: within over between. Gap: within less "
        "between. Intervals are made by drawing groups of samples again, which adds noise to "
        "directions, so a value can lie at an end of its interval or outside."
    )
    return html_table(lines, note)
