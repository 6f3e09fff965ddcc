"""What the rows say, in words: no sentence here knows the result beforehand, and what is not
measured is said to be not measured."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from composcope.report.locality import correlation, dots, edges
from composcope.report.material import one
from composcope.results import Row, where
from composcope.study.table import (
    BY_NAME,
    CONDITIONAL,
    EFFECTS,
    FILLED_9,
    LABELS,
    LOCAL,
    STUDENT,
    Comparison,
    Effect,
    Measurement,
    PaperValue,
    Side,
    at_equal_images,
    compare,
    covers,
)

EXP1, EXP2, EXP2L = Side("exp1"), Side("exp2"), Side("exp2l")
MENDED = Side("exp2", LOCAL)
DISTILLED = Side(STUDENT)
POLICIES = (EXP1, Side("random"), Side("drop-one"), EXP2)  # Table 2, in the paper's order


# ----------------------------------------------------------------------------
# Numbers, names and marks.


def two(value: Any) -> str:
    """Two significant digits; whole numbers as they are."""
    if value is None:
        return "not measured"
    if isinstance(value, str | bool):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(digits, 0)}f}"


def told(row: Row | None) -> str:
    """A value with its 95 % interval: "7 [6, 8]"."""
    if row is None or row.value is None:
        return "not measured"
    return two(row.value) + ("" if row.low is None else f" [{two(row.low)}, {two(row.high)}]")


def name(side: Side) -> str:
    if side.intervention is None:
        return f"{side.run}{side.sigmas.words}"
    radius = side.intervention.radius
    within = "" if radius is None or side.intervention == LOCAL else f" ({two(radius)})"
    return f"{side.run} + {side.intervention.name}{within}"


def kind(side: Side) -> str:
    """What the model is, in a few words: "one label, patch-local"."""
    if side.intervention == LOCAL:
        return "the same, local conditions"
    if side.intervention:
        return f"the same, {side.intervention.name} conditions"
    if side.run not in BY_NAME:
        return ""
    config = BY_NAME[side.run].config()
    words = [LABELS[config.labels]]
    if config.conditioner != "grid":
        words.append(config.conditioner)
    if config.net == "local":
        words.append("patches as wide as the image" if covers(config) else "patch-local")
    return ", ".join(words)


def listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


@dataclass(frozen=True)
class Verdict:
    """Whether ours agrees with the paper: a mark that does not rest on colour, and words."""

    mark: str
    words: str


NOT_MEASURED = Verdict("–", "not measured")


def verdict(row: Row | None, paper: Sequence[PaperValue]) -> Verdict:
    """Whether one of the paper's values lies in our interval; if not, on which side ours is."""
    if row is None or row.value is None:
        return NOT_MEASURED
    if not paper:
        return Verdict("·", "not in the paper")
    _, low, high = edges(row.estimate)
    if any(low <= value.high and value.low <= high for value in paper):
        return Verdict("✓", "agrees")
    if row.max_K is not None and high >= row.max_K:
        return Verdict("…", "not asked further")
    if high < min(value.low for value in paper):
        return Verdict("▼", "ours is lower")
    if low > max(value.high for value in paper):
        return Verdict("▲", "ours is higher")
    return Verdict("✗", "differs")


SEEN = {
    "apart": Verdict("✓", "yes, intervals apart"),
    "overlap": Verdict("≈", "yes, but intervals overlap"),
    "no": Verdict("✗", "no"),
    "not measured": NOT_MEASURED,
}


def paper_words(paper: Sequence[PaperValue]) -> str:
    """ "9 in v1, 7 in v3" """
    return ", ".join(f"{value} in {value.version}" for value in paper)


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
    models = "Of a model trained with all labels and one with a single label"
    if composes == "no":
        first = f"{models}, the one with more labels composes no further than the other"
    else:
        further = "composes further beyond its training"
        first = {
            "apart": f"{models}, the one whose score is local in its conditions {further}",
            "overlap": f"{models}, the one whose score seems the more local {further}",
            "no": f"{models}, the one that {further} does not have the more local score",
            "not measured": f"{models}, the one with more labels {further}",
        }[local]
    second = {
        "apart": ", and making the conditions of the other local lets it compose as well",
        "overlap": ", and making the conditions of the other local seems to help it",
        "no": ", and making the conditions of the other local does not help it",
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
        row = one(rows, side, "length/found", K=9)
        found.append(
            Fact("–" if row is None else two(row.value), words if row else f"Not measured: {words}")
        )
    return found


# ----------------------------------------------------------------------------
# The answers of the sections.


def composes(rows: Sequence[Row], sides: Sequence[Side]) -> str:
    """K_max of the main runs beside the paper, and over all runs how many agree."""
    parts = []
    for side in (EXP1, EXP2, Side("exp3")):
        row = one(rows, side, "length/k_max", rule="paper")
        paper = paper_words(BY_NAME[side.run].paper_k_max)
        reaches = f"{side.run} reaches K_max {told(row)} (paper: {paper})"
        parts.append(reaches if row else f"{side.run} is not measured")
    counts = Counter(
        verdict(one(rows, side, "length/k_max", rule="paper"), BY_NAME[side.run].paper_k_max).words
        for side in sides
        if side.run in BY_NAME and BY_NAME[side.run].paper_k_max
    )
    many = ", ".join(f"{words} {count}" for words, count in counts.most_common())
    return (
        f"Trained on one to three objects, {listed(parts)}. Of {counts.total()} runs with a number "
        f"in the paper: {many}."
    )


def looks(rows: Sequence[Row]) -> str:
    """Conditional locality, and how it goes with composing."""
    parts = []
    for side in (EXP1, EXP2L, EXP2, Side("exp3")):
        row = one(rows, side, "locality/conditional_locality")
        parts.append(f"{two(row.value) if row else 'not measured'} in {side.run}")
    chances = [
        row.chance for row in where(rows, what="locality/conditional_locality") if row.chance
    ]
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


def of_nine(rows: Sequence[Row], phrases: Mapping[Side, str]) -> str:
    """How many of nine objects asked each model draws; then those that are not measured."""
    known, unknown = [], []
    for side, phrase in phrases.items():
        row = one(rows, side, "length/found", K=9)
        if row is None:
            unknown.append(name(side))
        else:
            known.append(f"{two(row.value)} {phrase}")
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
    return f"{of_nine(rows, phrases)}{said}"


def repaired(rows: Sequence[Row]) -> list[str]:
    """What was tried beyond: students, penalties, close places, what predicts, found places; only
    what is measured."""
    parts = [student(rows), penalised(rows), overlap(rows), predicted(rows), own_places(rows)]
    return [part for part in parts if part]


def student(rows: Sequence[Row]) -> str:
    reached = one(rows, DISTILLED, "length/k_max", rule="paper")
    teacher = one(rows, MENDED, "length/k_max", rule="paper")
    if reached is None:
        return ""
    local = one(rows, DISTILLED, "locality/conditional_locality")
    before = one(rows, EXP2, "locality/conditional_locality")
    passes = one(rows, MENDED, "length/evaluations")
    cost = f", which takes {two(passes.value)} passes at K = {passes.K}," if passes else ""
    return (
        f"The distilled student reaches K_max {told(reached)} in one pass, its teacher{cost} "
        f"{told(teacher)}. Its conditional locality is {told(local)}, that of exp2 {told(before)}."
    )


def penalised(rows: Sequence[Row]) -> str:
    parts = []
    for run, plain in (("exp2-penalty", EXP2), ("exp3-penalty", Side("exp3"))):
        filled = one(rows, Side(run), "length/found", K=9)
        if filled is None:
            continue
        local = one(rows, Side(run), "locality/conditional_locality")
        parts.append(
            f"{run} draws {told(filled)} of nine where {plain.run} draws "
            f"{told(one(rows, plain, 'length/found', K=9))}; its conditional locality is "
            f"{told(local)}, that of {plain.run} "
            f"{told(one(rows, plain, 'locality/conditional_locality'))}"
        )
    return f"With far influence penalised in training, {'; '.join(parts)}." if parts else ""


def overlap(rows: Sequence[Row]) -> str:
    fails = where(rows, what="overlap/fails")
    if not fails:
        return ""
    parts = [
        f"{two(row.value)} ({' + '.join(str(p) for p in (row.run, row.intervention) if p)})"
        for row in fails
    ]
    return (
        "Of two places, both are drawn in at least half of the images down to a distance, in image "
        f"sides, of {listed(parts)}."
    )


def predicted(rows: Sequence[Row]) -> str:
    found = {row.concept: row for row in where(rows, what="predict/spearman") if row.sigma is None}
    if not found:
        return ""
    errors = {row.concept: row for row in where(rows, what="predict/error")}
    parts = [f"that of the early {known} is {told(row)}" for known, row in found.items()]
    missed = [f"{told(row)} by {known}" for known, row in errors.items()]
    return (
        f"Rank correlation with the places filled of six in the end: {listed(parts)}, over "
        f"{max(row.n or 0 for row in found.values())} runs. A run held out is missed by "
        f"{listed(missed)} places."
    )


def own_places(rows: Sequence[Row]) -> str:
    parts = []
    for what, run, noun in (
        ("length/found", "color", "colours"),
        ("text/found", "text_control", "phrases"),
    ):
        own = [row for row in where(rows, what=what, run=run) if row.value is not None]
        if not {row.intervention for row in own} & {"own", "peaks"}:
            continue
        most = max(row.K or 0 for row in own)
        shown = {row.intervention: row for row in own if most == row.K}
        each = [f"{told(row)} {f'({way})' if way else 'as it is'}" for way, row in shown.items()]
        parts.append(f"of {most} {noun} {run} draws {listed(each)}")
    return f"With neighbourhoods that models find themselves: {'; '.join(parts)}." if parts else ""


def policies(rows: Sequence[Row]) -> str:
    """The order of label policies here beside the paper's."""
    sides = at_equal_images(POLICIES, rows)
    labels = {side: LABELS[BY_NAME[side.run].config().labels] for side in sides}
    first = of_nine(rows, {side: f"with {label}" for side, label in labels.items()})
    known = {side: one(rows, side, "length/found", K=9) for side in sides}
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
    reached = one(rows, Side("color"), "length/k_max", rule="paper")
    paper = paper_words(BY_NAME["color"].paper_k_max)
    own = [
        row for row in where(rows, what="features/between", run="color") if row.index is not None
    ]
    layers = [row for row in own if row.value is not None]
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
            "noise"
        )
        colours += f" (mean cosine {two(best.value)})"
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
    return [row for row in rows if row.what.startswith(f"{room}/") and row.holds is not None]


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
        parts.append(
            f"of {title}, {holding} of {len(found)} claims hold"
            if found
            else f"{title} is not measured"
        )
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
        paper = (
            BY_NAME[side.run].paper_k_max if side.run in BY_NAME and not side.intervention else ()
        )
        row = one(rows, side, "length/k_max", rule="paper")
        said = verdict(row, paper)
        if said.mark in "▼▲✗":
            lines.append(
                f"K_max of {name(side)}: {told(row)}, paper {paper_words(paper)}: {said.words}"
            )
    for row in [*claims(rows, "theory"), *claims(rows, "sim")]:
        if not row.holds:
            lines.append(f"{row.claim}: {told(row)}")
    return lines
