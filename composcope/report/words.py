"""What the rows say, in words: no sentence here knows the result beforehand, and what is not
measured is said to be not measured."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from composcope.report.locality import correlation, dots, edges
from composcope.report.marks import (
    DISTILLED,
    EXP1,
    EXP2,
    EXP2L,
    MENDED,
    POLICIES,
    SEEN,
    listed,
    name,
    paper_of,
    paper_words,
    sentence,
    told,
    two,
    verdict,
)
from composcope.report.material import conditional, k_max, of_nine, of_rooms
from composcope.results import Row, where
from composcope.study.effects import (
    CONDITIONAL,
    EFFECTS,
    FILLED_9,
    Comparison,
    Effect,
    Measurement,
    Side,
    at_equal_images,
    compare,
)
from composcope.study.table import BY_NAME, LABELS

# ----------------------------------------------------------------------------
# The first screen.


def found_effect(rows: Sequence[Row], above: Side, below: Side, by: Measurement) -> Comparison:
    """One of the study's comparisons."""
    same = [e for e in EFFECTS if (e.above, e.below, e.measurement) == (above, below, by)]
    return compare(same[0] if same else Effect("ours", "", above, below, by), rows)


def headline(rows: Sequence[Row]) -> str:
    """What was found, in one sentence."""
    composes = found_effect(rows, EXP1, EXP2, FILLED_9).agrees
    local = found_effect(rows, EXP1, EXP2, CONDITIONAL).agrees
    mended = found_effect(rows, MENDED, EXP2, FILLED_9).agrees
    if composes == "not measured":
        return "Whether a model composes is not measured yet."
    first = "A model trained with all labels composes no further than one with a single label"
    if composes != "no":
        further = "composes further beyond its training than one with a single label"
        first = {
            "apart": f"A model trained with all labels listens more locally and {further}",
            "overlap": f"A model trained with all labels {further} and seems to listen more locally",
            "no": f"A model trained with all labels {further}, but does not listen more locally",
            "not measured": f"A model trained with all labels {further}",
        }[local]
    second = {
        "apart": "; made to listen locally, without training, the second composes as well",
        "overlap": "; made to listen locally, the second seems to compose further",
        "no": "; made to listen locally, the second composes no further",
        "not measured": "",
    }[mended]
    return f"{first}{second}."


@dataclass(frozen=True)
class Fact:
    """One plain sentence around one number."""

    number: str
    words: str


def facts(rows: Sequence[Row]) -> list[Fact]:
    """Of nine objects asked, how many are drawn: the first screen's three sentences."""
    whose = {
        EXP1: "of nine objects asked are drawn in place when every object of a training image was "
        "labelled (exp1).",
        EXP2: "of nine are drawn when one object of each training image was labelled (exp2).",
        MENDED: "of nine are drawn by that same network, not retrained, when each pixel hears "
        "nearby conditions only.",
    }
    found = []
    for side, words in whose.items():
        row = of_nine(rows, side)
        found.append(Fact(two(row.value), words) if row else Fact("–", f"Not measured: {words}"))
    return found


# ----------------------------------------------------------------------------
# The answers of the sections.


def composes(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """K_max of the main runs beside the paper, and over all runs how many agree."""
    parts = []
    for side in (EXP1, EXP2, Side("exp3")):
        row = k_max(rows, side)
        reaches = f"{side.run} reaches K_max {told(row)} (paper: {paper_words(paper_of(side))})"
        parts.append(reaches if row else f"{side.run} is not measured")
    known = {side: paper for side in sides if (paper := paper_of(side))}
    counts = Counter(verdict(k_max(rows, side), paper).words for side, paper in known.items())
    many = ", ".join(f"{words} {count}" for words, count in counts.most_common())
    return (
        f"Trained on one to three objects, {listed(parts)}. Of {counts.total()} runs with a number "
        f"in the paper: {many}."
    )


def looks(rows: Sequence[Row]) -> str:
    """Conditional locality, and how it goes with composing."""
    parts = []
    for side in (EXP1, EXP2L, EXP2, Side("exp3")):
        row = conditional(rows, side)
        parts.append(f"{two(row.value) if row else 'not measured'} in {side.run}")
    every = where(rows, what="locality/conditional_locality")
    chances = [row.chance for row in every if row.chance]
    by_chance = f"; {two(chances[-1])} would be chance" if chances else ""
    first = (
        "Of what a condition changes in the image, the share near its own place is "
        f"{listed(parts)}{by_chance}."
    )
    points = dots(rows)
    found = correlation(points)
    if found is None or math.isnan(found.value):
        return f"{first} Too few models are measured to say whether this goes with composing."
    ends = "" if found.low is None else f" [{two(found.low)}, {two(found.high)}]"
    return (
        f"{first} Over {len(points)} models and moments of training, the rank correlation of this "
        f"share with how far K_max exceeds training is {two(found.value)}{ends}; the paper calls "
        "the two strongly correlated and prints no number."
    )


def all_of_nine(rows: Sequence[Row], phrases: Mapping[Side, str]) -> str:
    """How many of nine objects asked each model draws; then those that are not measured."""
    found = {side: of_nine(rows, side) for side in phrases}
    known = [f"{two(row.value)} {phrases[side]}" for side, row in found.items() if row]
    unknown = [name(side) for side, row in found.items() if row is None]
    first = f"Of nine objects asked, models draw {listed(known)}." if known else ""
    second = f"Not measured: {', '.join(unknown)}." if unknown else ""
    return f"{first} {second}".strip()


def forced(rows: Sequence[Row]) -> str:
    """Repair at sampling time, and by training."""
    wide = Side("exp2l-wide")
    phrases = {
        EXP2: "with one label (exp2)",
        MENDED: "when its conditions are made local at sampling time",
        DISTILLED: "when a student has learned that in one pass",
        EXP2L: "when it is trained on local patches (exp2l)",
        wide: "with patches as wide as the image",
    }
    result = found_effect(rows, EXP2L, wide, FILLED_9).agrees
    said = {
        "apart": " So patches help because they are local: as wide as the image, they fail again.",
        "overlap": " Patches as wide as the image seem to fail again.",
        "no": " Patches as wide as the image do as well, which the paper says they do not.",
        "not measured": "",
    }[result]
    return f"{all_of_nine(rows, phrases)}{said}"


def policies(rows: Sequence[Row]) -> str:
    """The order of label policies here beside the paper's."""
    sides = at_equal_images(POLICIES, rows)
    labels = {side: LABELS[BY_NAME[side.run].config().labels] for side in sides}
    first = all_of_nine(rows, {side: f"with {words}" for side, words in labels.items()})
    known = {side: of_nine(rows, side) for side in sides}
    values = {side: edges(row.estimate)[0] for side, row in known.items() if row is not None}
    if len(values) < len(sides):
        return f"{first} Whether the order is the paper's cannot be said yet."
    ours = sorted(sides, key=lambda side: -values[side])
    if tuple(ours) == sides:
        return f"{first} This is the paper's order."
    return (
        f"{first} The paper's order is {', '.join(labels.values())}; ours is "
        f"{', '.join(labels[s] for s in ours)}."
    )


def elsewhere(rows: Sequence[Row]) -> list[str]:
    """Colours, then words."""
    reached = k_max(rows, Side("color"))
    paper = paper_words(paper_of(Side("color")))
    own = where(rows, what="features/between", run="color")
    layers = [row for row in own if None not in (row.index, row.value)]
    colours = (
        "Asked for colours, the model trained on one to five objects reaches K_max "
        f"{told(reached)} (paper: {paper})"
    )
    if reached is None:
        colours = "How many colours a model composes is not measured"
    if layers:
        best = min(layers, key=lambda row: abs(edges(row.estimate)[0]))
        colours += (
            f"; the directions of colours are least alike in layer {best.layer} at {best.level} "
            f"noise (mean cosine {two(best.value)})"
        )
    else:
        colours += "; how alike the directions of colours are inside it is not measured"
    return [f"{colours}.", words_heard(rows)]


def words_heard(rows: Sequence[Row]) -> str:
    thirds = [row for row in where(rows, what="features/share_in_third") if row.value is not None]
    if not thirds:
        return "Where the words of a prompt act is not measured."
    highest = max(row.sigma or 0 for row in thirds)
    shares = [edges(row.estimate)[0] for row in thirds if row.sigma == highest]
    alike = [row for row in where(rows, what="features/two_places") if row.value is not None]
    more = ""
    if alike:
        more = (
            f"; the words' influence at two far places correlates at {told(alike[-1])} (paper: "
            "nearly identical)"
        )
    return (
        f"In the text model {thirds[-1].run}, {two(fmean(shares))} of what a word changes while "
        "all is noise lies in "
        f"the third of the picture it speaks of, where chance is {two(1 / 3)}{more}."
    )


def claims(rows: Iterable[Row], room: str) -> list[Row]:
    return [row for row in of_rooms(rows, room) if row.holds is not None]


def theory(rows: Sequence[Row]) -> str:
    """How many claims hold, and which do not."""
    parts = []
    titles = {
        "theory": "the paper's theory",
        "sim": "Structured Identity Mapping (how concepts are learned)",
    }
    for room, title in titles.items():
        found = claims(rows, room)
        holding = sum(bool(row.holds) for row in found)
        counted = f"of {title}, {holding} of {len(found)} claims hold"
        parts.append(counted if found else f"{title} is not measured")
    return sentence(
        f"{'; '.join(parts)}. Each was measured on distributions small enough to compute exactly."
    )


def findings(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[Comparison]]:
    """The study's effects, those of one finding together."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for effect in EFFECTS:
        key = effect.where, f"{effect.says}: {name(effect.above)} above {name(effect.below)}"
        found.setdefault(key, []).append(compare(effect, rows))
    return found


def sure(rows: Sequence[Row]) -> str:
    every = [comparison for some in findings(rows).values() for comparison in some]
    counts = Counter(SEEN[comparison.agrees].words for comparison in every)
    many = "; ".join(f"{words}: {count}" for words, count in counts.most_common())
    unequal = sum(comparison.terms.startswith("not equal") for comparison in every)
    return (
        f"The paper's findings and ours make {len(every)} comparisons of two runs. Are they seen? "
        f"{sentence(many)}. {unequal} of them compare runs that differ in more than the finding; "
        "the table says in what."
    )


def not_so(rows: Sequence[Row], sides: Sequence[Side]) -> list[str]:
    """What did not come out: comparisons, K_max beside the paper, claims of theory."""
    lines = []
    for (place, says), some in findings(rows).items():
        failed = [comparison for comparison in some if comparison.agrees == "no"]
        if failed:
            by = listed([comparison.effect.measurement.words for comparison in failed])
            lines.append(f"{says} ({place}): not by {by}")
    for side in sides:
        row = k_max(rows, side)
        paper = paper_of(side)
        said = verdict(row, paper)
        if said.mark in "▼▲✗":
            theirs = paper_words(paper)
            lines.append(f"K_max of {name(side)}: {told(row)}, paper {theirs}: {said.words}")
    for row in [*claims(rows, "theory"), *claims(rows, "sim")]:
        if not row.holds:
            lines.append(f"{row.claim}: {told(row)}")
    return lines
