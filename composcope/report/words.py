"""What the rows say, in words: no sentence here knows the result beforehand, and what is not
measured is called not measured."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from composcope.report import marks
from composcope.report.features import least_alike
from composcope.report.findings import claims, findings
from composcope.report.locality import OF, correlation, dots
from composcope.report.marks import (
    EXP1,
    EXP2,
    EXP2_LOCAL,
    EXP2L,
    and_list,
    in_percent,
    name,
    two,
    with_interval,
)
from composcope.report.material import conditional, k_max_beside_paper, k_max_row, of_nine, one
from composcope.results import Row, where, with_value
from composcope.study import effects
from composcope.study.effects import CONDITIONAL, FILLED_9, Measurement, Side, compare, mean_row
from composcope.study.table import BY_NAME, STUDENT

# The first screen.


def agrees(rows: Sequence[Row], above: Side, below: Side, by: Measurement = FILLED_9) -> str:
    return compare(effects.Effect("", "", above, below, by), rows).agrees


def headline(rows: Sequence[Row]) -> str:
    """What was found, in one sentence."""
    composes = agrees(rows, EXP1, EXP2)
    if composes == "not measured":
        return "Whether a model composes is not measured yet."
    more = "no more of them than" if composes == "no" else "more of them than"
    local = {
        "apart": ", and its pixels respond more to what is asked for near them",
        "overlap": ", and its pixels seem to respond more to what is asked for near them",
        "no": ", but its pixels do not respond more to what is asked for near them",
    }
    forced = {
        "apart": "; forced to respond to that alone, the second draws more too, without retraining",
        "overlap": "; forced to respond to that alone, the second seems to draw more too",
        "no": "; forced to respond to that alone, the second draws no more",
    }
    return (
        "Trained on one to three objects and asked for nine, a model that learned with every "
        f"object labelled draws {more} one that learned with a single label"
        f"{local.get(agrees(rows, EXP1, EXP2, CONDITIONAL), '')}"
        f"{forced.get(agrees(rows, EXP2_LOCAL, EXP2), '')}."
    )


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """How many of nine places are filled: the first screen's three numbers and sentences."""
    whose = {
        EXP1: "of nine objects asked for are drawn in place by a model trained with every object "
        "labelled (exp1).",
        EXP2: "of nine are drawn by a model trained with one object of each image labelled (exp2).",
        EXP2_LOCAL: "of nine are drawn by that second model, not retrained, when each pixel is "
        f"given only the condition near it ({name(EXP2_LOCAL)}).",
    }
    found = {words: of_nine(rows, side) for side, words in whose.items()}
    return [
        (two(row.value), words) if row else ("–", f"Not measured: {words}")
        for words, row in found.items()
    ]


# The answers of the sections: one or two sentences each.


def tally(verdicts: Iterable[marks.Verdict]) -> str:
    """ "5 in agreement, 10 not measured": how often each verdict was reached, the most first."""
    counts = Counter(verdict.numbered for verdict in verdicts)
    return and_list([f"{count} {words}" for words, count in counts.most_common()])


def all_of_nine(rows: Sequence[Row], phrases: Mapping[Side, str]) -> str:
    """How many of nine places each model fills; in brackets those that are not measured."""
    found = {side: of_nine(rows, side) for side in phrases}
    trained = [row.images for row in found.values() if row]
    known = [
        f"{with_interval(row)} {phrases[side]}{after_images(row, trained[0])}"
        for side, row in found.items()
        if row
    ]
    unknown = ", ".join(name(side) for side, row in found.items() if row is None)
    if not known:
        return f"Not measured: {unknown}"
    first = f"Of nine places asked for, models{equally(trained)} fill {and_list(known)}"
    return f"{first} (not measured: {unknown})" if unknown else first


def equally(trained: Sequence[int | None]) -> str:
    """Said of runs that were all trained on the same number of images: other sections may show the
    same runs after more."""
    if len(trained) < 2 or None in trained or len({*trained}) > 1:
        return ""
    return f" trained on {trained[0]:,} images each"


def after_images(row: Row, usual: int | None) -> str:
    """Said of a run that was trained on other than the usual number of images."""
    if row.images is None or row.images == usual or row.run == STUDENT:
        return ""
    return f" after {row.images:,} images"


def composes(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """Places filled by the main runs, and in how many runs K_max agrees with the paper's."""
    phrases = {
        EXP1: "with all labels on a grid (exp1)",
        EXP2: "with one label (exp2)",
        Side("exp3"): "with all labels in a list (exp3)",
    }
    main = dict(zip(effects.at_equal_images([*phrases], rows), phrases.values(), strict=True))
    known = {side: paper for side in sides if (paper := marks.paper_of(side))}
    verdicts = [
        marks.verdict(k_max_beside_paper(rows, side), paper) for side, paper in known.items()
    ]
    return (
        f"{all_of_nine(rows, main)}. The paper has a K_max for {len(known)} of our runs: "
        f"{tally(verdicts)}."
    )


def looks(rows: Sequence[Row]) -> str:
    """Conditional locality, and how it goes with composing."""
    sides = effects.at_equal_images((EXP1, EXP2L, EXP2, Side("exp3")), rows)
    parts = [f"{with_interval(conditional(rows, side))} in {side.run}" for side in sides]
    every = where(rows, what="locality/conditional_locality")
    chances = [row.chance for row in every if row.chance]
    by_chance = f"; chance is {two(chances[-1])}" if chances else ""
    first = (
        "Conditional locality, the share of a condition's effect that is near its own place, is "
        f"{and_list(parts)}{by_chance}."
    )
    filled = correlation(dots(rows, "filled"))
    if filled is None or math.isnan(filled.value):
        return f"{first} Too few models are measured to say whether this goes with composing."
    reached = correlation(dots(rows, "paper"))
    harsh = ""
    if reached and not math.isnan(reached.value):
        harsh = f", with K_max less the most objects in training {with_interval(reached)}"
    return (
        f"{first} Over {filled.n} models, counting earlier moments of their training, its rank "
        f"correlation with the places filled of {OF} is {with_interval(filled)}{harsh}."
    )


def forced(rows: Sequence[Row]) -> str:
    """Locality by an intervention at sampling time, and by training."""
    wide = Side("exp2l-wide")
    phrases = {
        EXP2: "with one label (exp2)",
        EXP2_LOCAL: "with local conditions at sampling time",
        marks.TEACHER: "with guidance inside these",
        marks.DISTILLED: "when a student has learned to do that in one pass",
        EXP2L: "when trained on local patches (exp2l)",
        wide: "with patches as wide as the image",
    }
    patches = {
        "apart": " So patches help because they are local: as wide as the image, they fail again.",
        "overlap": " Patches as wide as the image seem to fail again.",
        "no": " Patches as wide as the image do as well; in the paper they fail.",
    }
    verdict = patches.get(agrees(rows, EXP2L, wide), "")
    single = one(rows, wide, "length/complete", K=1)
    if single and single.estimate.value < 0.5:
        verdict = (
            " Patches as wide as the image fail at one place already "
            f"({in_percent(single)} of images have it), so they say little of why the others work."
        )
    return f"{all_of_nine(rows, phrases)}.{verdict}"


def elsewhere(rows: Sequence[Row]) -> str:
    """Colours, then words."""
    colours = "How many colours a model composes is not measured"
    if reached := k_max_row(rows, Side("color")):
        theirs = marks.paper_words(marks.paper_of(Side("color")))
        ours = f"K_max {with_interval(reached)} (paper: {theirs})"
        colours = f"Asked for colours, the model color reaches {ours}"
    if best := least_alike(where(rows, run="color")):
        colours += (
            "; inside it, in the layer where the directions of colours are closest to orthogonal, "
            f"their mean cosine is {with_interval(best)}"
        )
    thirds = with_value(where(rows, what="features/share_in_third"))
    if not thirds:
        return f"{colours}. Where the words of a prompt act is not measured."
    highest = max(row.sigma or 0 for row in thirds)
    share = mean_row([row for row in thirds if row.sigma == highest])
    return (
        f"{colours}. In {share.run}, at the highest noise level, {with_interval(share)} of a "
        f"word's effect lies in the third of the picture that its phrase names; chance is "
        f"{two(1 / 3)}."
    )


def theory(rows: Sequence[Row]) -> str:
    """How many claims hold."""
    titles = {
        "theory": "the paper's theory",
        "sim": "Structured Identity Mapping (a theory of the order in which concepts are learned)",
    }
    tested = {title: claims(rows, room) for room, title in titles.items()}
    known = [
        f"{sum(bool(row.holds) for row in some)} of {len(some)} claims of {title}"
        for title, some in tested.items()
        if some
    ]
    unknown = [title for title, some in tested.items() if not some]
    if not known:
        return f"Not measured: {and_list(unknown)}."
    missing = f" (not measured: {and_list(unknown)})" if unknown else ""
    return (
        f"On small examples, {and_list(known)} hold{missing}. Those that do not are listed under "
        '"How sure are we?".'
    )


def sure(rows: Sequence[Row]) -> str:
    every = [comparison for some in findings(rows).values() for comparison in some]
    many = tally(marks.SEEN[comparison.agrees] for comparison in every)
    unequal = sum(comparison.terms.startswith("not equal") for comparison in every)
    return (
        f"We compare two runs at a time, {len(every)} times, for findings of the paper and of our "
        f"own: {many}. In {unequal} comparisons the runs also differ in something else; the table "
        "says in what."
    )


# Words under figures, and folded away.


def grows(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """Places filled by the most objects of training images, beside the paper's Figure 8."""
    known = {side: row for side in sides if (row := of_nine(rows, side))}
    most = and_list([str(BY_NAME[side.run].config().objects[1]) for side in known])
    filled = and_list([with_interval(row) for row in known.values()])
    values = [row.estimate.value for row in known.values()]
    order = "More objects in training take a model further, as in the paper."
    if values != sorted(values):
        order = "In the paper more objects in training take a model further; here not always."
    return (
        "Does a model that saw more objects at once compose further (the paper's Figure 8)? After "
        f"equally many images of at most {most} objects, models fill {filled} of nine places. "
        f"{order} "
        "Left: K_max by two rules, and the paper's. Right: places filled."
    )


def two_places(rows: Sequence[Row]) -> list[str]:
    """How alike the words of a prompt act at two places, where that is measured."""
    alike = with_value(where(rows, what="features/two_places"))
    return [
        f"At two places far apart in {row.run}, the influences of the words correlate at "
        f"{with_interval(row)} (paper: nearly identical)."
        for row in alike[-1:]
    ]
