"""A student beside its teacher, in a figure and in words: functions of rows."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from composcope.report.drawing import legend
from composcope.report.figures import WIDTH
from composcope.report.locality import over
from composcope.report.looks import by_model
from composcope.report.marks import DISTILLED, EXP2, TEACHER, name, two, with_interval
from composcope.report.material import conditional, k_max_beside_paper, k_max_row, of_nine, one
from composcope.results import Row, only, where


def imitated(rows: Sequence[Row]) -> list[Row]:
    """How many images the student and its teacher complete; not those that came before them."""
    known = where(rows, what="imitation/complete")
    kept = [row for side in (DISTILLED, TEACHER) for row in where(known, **side.about)]
    last = {row.run: row.weights for row in sorted(kept, key=lambda row: row.date or "")}
    return [row for row in kept if row.weights == last[row.run]]


def imitation_figure(rows: Sequence[Row]) -> Figure:
    """Images with every place filled by the number of places: a student, and its teacher."""
    figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
    panel = figure.add_subplot(xlabel="K, objects asked for")
    panel.set_ylabel("share of images with all places filled")
    for style, words, own in by_model(where(rows, what="imitation/complete")):
        over(panel, own, "K", style, words)
    panel.set_ylim(-0.03, 1.03)
    legend(panel)
    return figure


def student(rows: Sequence[Row]) -> str:
    reached = k_max_beside_paper(rows, DISTILLED)
    if reached is None:
        return ""
    passes = one(rows, TEACHER, "length/evaluations")
    cost = f" in {two(passes.value)} passes at K = {passes.K}" if passes else ""
    filled = [with_interval(of_nine(rows, side)) for side in (DISTILLED, TEACHER)]
    teacher = k_max_beside_paper(rows, TEACHER)
    few = [k_max_row(rows, side, "places_eight") for side in (DISTILLED, TEACHER)]
    on_few = " (on eight images, as many as the paper counted, {} and {})"
    counted = on_few.format(*map(with_interval, few)) if all(few) else ""
    shares = [with_interval(conditional(rows, side)) for side in (DISTILLED, EXP2)]
    return (
        "Can one pass do what guided local conditions do in many? "
        f"The student is a network trained to do in one pass what {name(TEACHER)} does{cost}. "
        f"It fills {filled[0]} of nine places and its K_max is {with_interval(reached)}; its "
        f"teacher's are {filled[1]} and {with_interval(teacher)}{counted}. Its conditional "
        f"locality is {shares[0]}, that of exp2 {shares[1]}.{imitation(rows)}"
    )


def imitation(rows: Sequence[Row]) -> str:
    """How student and teacher compare image by image."""
    differences = where(rows, what="imitation/difference", run=DISTILLED.run)
    three, six = (only(differences, K=K) for K in (3, 6))
    reached = [
        only(where(rows, what="imitation/k_max", rule="places"), **side.about)
        for side in (DISTILLED, TEACHER)
    ]
    if three is None or six is None or not all(reached):
        return ""
    points = [
        f"{100 * a:+.1f} [{100 * b:+.1f}, {100 * c:+.1f}]"
        for a, (b, c) in ((one.estimate.value, one.estimate.ends) for one in (three, six))
    ]
    return (
        f" On {three.n} other images of each K, the same places from the same noise, the share of "
        f"its images with all places filled differs from its teacher's by {points[0]} percentage "
        f"points at three objects and by {points[1]} at six. K_max, whose rule about every image "
        f"asks more of more images, is {with_interval(reached[0])} there, its teacher's "
        f"{with_interval(reached[1])}."
    )
