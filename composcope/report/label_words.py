"""The answer to "Which labels?" in words: which objects are labelled, and how labels enter."""

from collections.abc import Sequence

from composcope.report import marks
from composcope.report.marks import EXP1, EXP2, with_interval
from composcope.report.material import of_nine, one
from composcope.report.words import agrees, all_of_nine
from composcope.results import Row
from composcope.study import effects
from composcope.study.effects import FILLED_6, Side
from composcope.study.table import BY_NAME, LABELS


def policies(rows: Sequence[Row]) -> str:
    """The order of label policies here beside the paper's."""
    sides = effects.at_equal_images(marks.POLICIES, rows)
    labels = {side: LABELS[BY_NAME[side.run].config().labels] for side in sides}
    first = all_of_nine(rows, {side: f"with {words}" for side, words in labels.items()})
    values = [row.estimate.value for side in sides if (row := of_nine(rows, side))]
    if len(values) < len(sides):
        return f"{first}."
    if values == sorted(values, reverse=True):
        return f"{first}, in the paper's order."
    return f"{first}; the paper's order is {', '.join(labels.values())}."


SINGLE, SINGLE_EDM2 = Side("exp1-one"), Side("exp1-one-edm2")


def single(rows: Sequence[Row]) -> str:
    """Whether the way labels enter the network decides if single objects are composed."""
    ours, edm2 = (
        with_interval(one(rows, side, FILLED_6.what, **FILLED_6.coordinates))
        for side in (SINGLE, SINGLE_EDM2)
    )
    verdicts = {
        "apart": ", so the way labels enter the network matters",
        "overlap": "; the intervals overlap, so this does not tell whether that matters",
        "no": ", so linear labels are not what makes it compose",
    }
    so = verdicts.get(agrees(rows, SINGLE, SINGLE_EDM2, FILLED_6), "")
    return (
        f"Trained on single objects, a model fills {ours} of six places if its labels act linearly "
        f"(exp1-one) and {edm2} if they enter as in EDM2 (exp1-one-edm2){so}."
    )


def entering(rows: Sequence[Row]) -> list[str]:
    """Whether the paper's contrast rests on labels that act linearly: a paragraph, or none."""
    sides = effects.at_equal_images((EXP1, EXP2, Side("exp1-edm2"), Side("exp2-edm2")), rows)
    found = [one(rows, side, FILLED_6.what, **FILLED_6.coordinates) for side in sides]
    if None in found:
        return []
    linear, linear_one, edm2, edm2_one = (with_interval(row) for row in found)
    verdicts = {
        "apart": "so the contrast of the two does not rest on linear labels",
        "overlap": "so without linear labels the two are hardly apart",
        "no": "so the contrast of the two rests on linear labels",
    }
    so = verdicts[agrees(rows, sides[2], sides[3], FILLED_6)]
    return [
        "Does the contrast of all labels and one rest on labels that act linearly, which are ours? "
        f"With labels as in EDM2, models fill {edm2} of six places (all labels) and {edm2_one} "
        f"(one label), with linear ones {linear} and {linear_one}: {so}."
    ]
