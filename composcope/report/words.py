"""What the rows say, in words: no sentence here knows the result beforehand, and what is not
measured is called not measured."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from composcope.report import marks
from composcope.report.features import least_alike
from composcope.report.locality import OF, correlation, dots
from composcope.report.marks import (
    EXP1,
    EXP2,
    EXP2_LOCAL,
    EXP2L,
    and_list,
    name,
    two,
    with_interval,
)
from composcope.report.material import conditional, k_max_row, of_nine, of_rooms, one
from composcope.report.theory import plain_claim, prediction_text
from composcope.results import Row, where, with_value
from composcope.study import effects
from composcope.study.effects import CONDITIONAL, FILLED_6, FILLED_9, Measurement, Side, compare
from composcope.study.table import BY_NAME, LABELS

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
        "Trained on one to three objects and asked for nine, a model that learned with every object "
        f"labelled draws {more} one that learned with a single label"
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


# The answers of the sections.


def tally(verdicts: Iterable[marks.Verdict]) -> str:
    """ "5 in agreement, 10 not measured": how often each verdict was reached, the most often first."""
    counts = Counter(verdict.numbered for verdict in verdicts)
    return and_list([f"{count} {words}" for words, count in counts.most_common()])


def composes(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """Places filled and K_max of the main runs beside the paper, and how many runs agree."""
    main = (EXP1, EXP2, Side("exp3"))
    phrases = {EXP1: "with all labels (exp1)", EXP2: "with one label (exp2)"}
    first = all_of_nine(rows, {**phrases, Side("exp3"): "with all labels in a list (exp3)"})
    parts = []
    for side in main:
        if row := k_max_row(rows, side):
            theirs = marks.paper_words(marks.paper_of(side))
            parts.append(f"{with_interval(row)} for {side.run} (paper: {theirs})")
    reached = f" K_max is {and_list(parts)}." if parts else ""
    known = {side: paper for side in sides if (paper := marks.paper_of(side))}
    verdicts = [marks.verdict(k_max_row(rows, side), paper) for side, paper in known.items()]
    return (
        f"{first}{reached} The paper has a K_max for {len(known)} of our runs: {tally(verdicts)}."
    )


def grows(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """Places filled by the most objects of training images, beside the paper's Figure 8."""
    equal = effects.at_equal_images(sides, rows)
    known = {side: row for side in equal if (row := of_nine(rows, side))}
    if len(known) < 2:
        return "How this grows with the number of objects in training images is not measured."
    most = [str(BY_NAME[side.run].config().objects[1]) for side in known]
    values = [row.estimate.value for row in known.values()]
    order = "As in the paper's Figure 8, more objects in training take a model further."
    if values != sorted(values):
        order = "In the paper's Figure 8 more objects in training take a model further; here not always."
    filled = and_list([with_interval(row) for row in known.values()])
    return (
        f"After equally many images with at most {and_list(most)} objects, models fill {filled} of nine "
        f"places. {order}"
    )


def looks(rows: Sequence[Row]) -> str:
    """Conditional locality, and how it goes with composing."""
    shares = {side.run: conditional(rows, side) for side in (EXP1, EXP2L, EXP2, Side("exp3"))}
    parts = [f"{two(row and row.value)} in {run}" for run, row in shares.items()]
    every = where(rows, what="locality/conditional_locality")
    chances = [row.chance for row in every if row.chance]
    by_chance = f"; chance is {two(chances[-1])}" if chances else ""
    first = (
        "Conditional locality, the share of a condition's effect that is near its own place, is "
        f"{and_list(parts)}{by_chance}."
    )
    filled, exceeds = (correlation(dots(rows, reach)) for reach in ("filled", "paper"))
    if filled is None or exceeds is None or math.isnan(filled.value):
        return f"{first} Too few models are measured to say whether this goes with composing."
    return (
        f"{first} Over {filled.n} models, some at several moments of their training, its rank "
        f"correlation with the places filled of {OF} is {with_interval(filled)}. With how far K_max exceeds "
        f"the most objects in training it is {with_interval(exceeds)}: by the paper's rule one bad image at "
        "up to three objects can decide K_max. The paper calls the two strongly correlated and "
        "gives no number."
    )


def all_of_nine(rows: Sequence[Row], phrases: Mapping[Side, str]) -> str:
    """How many of nine places each model fills; then those that are not measured."""
    found = {side: of_nine(rows, side) for side in phrases}
    known = [f"{two(row.value)} {phrases[side]}" for side, row in found.items() if row]
    unknown = [name(side) for side, row in found.items() if row is None]
    first = f"Of nine places asked for, models fill {and_list(known)}." if known else ""
    second = f"Not measured: {', '.join(unknown)}." if unknown else ""
    return f"{first} {second}".strip()


def forced(rows: Sequence[Row]) -> str:
    """Locality by an intervention at sampling time, and by training."""
    wide = Side("exp2l-wide")
    phrases = {
        EXP2: "with one label (exp2)",
        EXP2_LOCAL: "with local conditions at sampling time",
        marks.DISTILLED: "when a student has learned to do that in one pass",
        EXP2L: "when trained on local patches (exp2l)",
        wide: "with patches as wide as the image",
    }
    patches = {
        "apart": " So patches help because they are local: as wide as the image, they fail again.",
        "overlap": " Patches as wide as the image seem to fail again.",
        "no": " Patches as wide as the image do as well; in the paper they fail.",
    }
    single = one(rows, wide, "length/complete", K=1)
    if single and single.estimate.value < 0.5:
        verdict = (
            " Patches as wide as the image fail at one place already "
            f"({100 * single.estimate.value:.0f} % of images have it), so they say little of why the "
            "others work."
        )
    else:
        verdict = patches.get(agrees(rows, EXP2L, wide), "")
    return all_of_nine(rows, phrases) + verdict


def policies(rows: Sequence[Row]) -> str:
    """The order of label policies here beside the paper's."""
    sides = effects.at_equal_images(marks.POLICIES, rows)
    labels = {side: LABELS[BY_NAME[side.run].config().labels] for side in sides}
    first = all_of_nine(rows, {side: f"with {words}" for side, words in labels.items()})
    known = {side: of_nine(rows, side) for side in sides}
    values = {side: row.estimate.value for side, row in known.items() if row}
    if len(values) < len(sides):
        return f"{first} Whether this is the paper's order cannot be said yet."
    ours = [labels[side] for side in sorted(sides, key=lambda side: -values[side])]
    if ours == [*labels.values()]:
        return f"{first} This is the paper's order."
    return f"{first} The paper's order is {', '.join(labels.values())}; ours is {', '.join(ours)}."


SINGLE, SINGLE_EDM2 = Side("exp1-one"), Side("exp1-one-edm2")


def single(rows: Sequence[Row]) -> str:
    """Whether the way labels enter the network decides if single objects are composed."""
    ours, edm2 = (
        one(rows, side, FILLED_6.what, **FILLED_6.coordinates) for side in (SINGLE, SINGLE_EDM2)
    )
    verdicts = {
        "apart": " So the way labels enter the network matters here.",
        "overlap": " The intervals overlap, so this does not tell whether the way labels enter "
        "matters.",
        "no": " So linear labels are not what makes it compose.",
    }
    so = verdicts.get(agrees(rows, SINGLE, SINGLE_EDM2, FILLED_6), "")
    return (
        "Labels can also enter a network in two ways. In ours what they add is linear: the effects "
        "of two labels add up, even if two were never seen together. In EDM2 they pass through a "
        f"nonlinear function. Of six places, a model trained on single objects fills {with_interval(ours)} with "
        f"linear labels (exp1-one); with labels as in EDM2 (exp1-one-edm2): {with_interval(edm2)}.{so}"
    )


def elsewhere(rows: Sequence[Row]) -> list[str]:
    """Colours, then words."""
    colours = "How many colours a model composes is not measured."
    alike = "How alike the directions of colours are inside it is not measured."
    if reached := k_max_row(rows, Side("color")):
        colours = (
            "Asked for colours, the model trained on one to five objects reaches K_max "
            f"{with_interval(reached)} (paper: {marks.paper_words(marks.paper_of(Side('color')))})."
        )
    if best := least_alike(where(rows, run="color")):
        alike = (
            f"Inside its network, the directions of colours are least alike in layer {best.layer} "
            f"at {best.level} noise: their mean cosine is {two(best.value)}."
        )
    return [f"{colours} {alike}", words_heard(rows)]


def words_heard(rows: Sequence[Row]) -> str:
    thirds = with_value(where(rows, what="features/share_in_third"))
    if not thirds:
        return "Where the words of a prompt act is not measured."
    highest = max(row.sigma or 0 for row in thirds)
    shares = [row.estimate.value for row in thirds if row.sigma == highest]
    alike = with_value(where(rows, what="features/two_places"))
    more = "".join(
        f". At two places far apart, the influences of the words correlate at {with_interval(row)} "
        "(paper: nearly identical)"
        for row in alike[-1:]
    )
    return (
        f"In the text-to-image model {thirds[-1].run}, at the highest noise level, "
        f"{two(fmean(shares))} of a word's effect lies in the third of the picture that its phrase "
        f"names; chance is {two(1 / 3)}{more}."
    )


def claims(rows: Iterable[Row], room: str) -> list[Row]:
    return [row for row in of_rooms(rows, room) if row.holds is not None]


def theory(rows: Sequence[Row]) -> str:
    """How many claims hold."""
    parts = []
    titles = {
        "theory": "the paper's theory",
        "sim": "Structured Identity Mapping (a theory of the order in which concepts are learned)",
    }
    for room, title in titles.items():
        holding = [row.holds for row in claims(rows, room)]
        said = f"{sum(map(bool, holding))} of {len(holding)} claims of {title} hold"
        parts.append(said if holding else f"{title} is not measured")
    text = "; ".join(parts)
    return (
        f"{text[0].upper()}{text[1:]}. Each was tested on distributions small enough to compute "
        "exactly. Those that do not hold are told in plain words under How sure are we?"
    )


def findings(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[effects.Comparison]]:
    """The study's effects, those of one finding together."""
    found: dict[tuple[str, str], list[effects.Comparison]] = {}
    for effect in effects.EFFECTS:
        key = effect.where, f"{effect.says}: {name(effect.above)} above {name(effect.below)}"
        found.setdefault(key, []).append(compare(effect, rows))
    return found


def sure(rows: Sequence[Row]) -> str:
    every = [comparison for some in findings(rows).values() for comparison in some]
    many = tally(marks.SEEN[comparison.agrees] for comparison in every)
    unequal = sum(comparison.terms.startswith("not equal") for comparison in every)
    return (
        f"We compare two runs at a time, {len(every)} times, for findings of the paper and of our "
        f"own: {many}. In {unequal} comparisons the runs also differ in something else; the table "
        "says in what."
    )


# What a reader must know to read what did not come out, by its title.
NOT_SO = {
    "Comparisons of two runs": "A finding is a larger number for the first run than for the second, "
    "measured in up to three ways.",
    "K_max": "By the paper's rule on all of our images, where a single bad one can decide it. The "
    "tables also have K_max on eight images, as many as the paper counted.",
    "Claims of theory": "Each was tested on an exact example. Swing-by: the loss on a combination "
    "that was never trained on falls, climbs, and falls again. Where its papers show it, we expect it "
    "from at least half of all random starts.",
}


def failures(rows: Sequence[Row], sides: Sequence[Side]) -> dict[str, list[str]]:
    """What did not come out, by kind: comparisons, K_max beside the paper, claims of theory."""
    compared = [
        f"{says} ({place}). {seen_by(some)}"
        for (place, says), some in findings(rows).items()
        if any(comparison.agrees == "no" for comparison in some)
    ]
    reached = []
    for side in sides:
        row = k_max_row(rows, side)
        paper = marks.paper_of(side)
        said = marks.verdict(row, paper)
        if said.mark in "▼▲✗":
            reached.append(
                f"{name(side)}: {with_interval(row)}, paper {marks.paper_words(paper)}: {said.words}"
            )
    tested = [*claims(rows, "theory"), *claims(rows, "sim")]
    false = [
        f"{plain_claim(row)} {with_interval(row)} (predicted: {prediction_text(row)})."
        for row in tested
        if not row.holds
    ]
    kinds = {"Comparisons of two runs": compared, "K_max": reached, "Claims of theory": false}
    return {title: lines for title, lines in kinds.items() if lines}


def seen_by(some: Sequence[effects.Comparison]) -> str:
    """ "Seen in places filled of 9; not in K_max by the paper's rule." """
    by: dict[bool, list[str]] = {True: [], False: []}
    for comparison in some:
        if comparison.agrees != "not measured":
            by[comparison.agrees != "no"].append(comparison.effect.measurement.words)
    seen = f"Seen in {and_list(by[True])}; not in" if by[True] else "Not seen in"
    return f"{seen} {and_list(by[False])}."
