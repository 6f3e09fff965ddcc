"""What was expected of the rows, and what of it did not come out: comparisons of two runs, K_max
beside the paper's, claims of theory."""

from collections.abc import Iterable, Mapping, Sequence

from composcope.report import marks
from composcope.report.marks import and_list, name, with_interval
from composcope.report.material import k_max_beside_paper, of_rooms
from composcope.report.theory import plain_claim, prediction_text
from composcope.results import Row
from composcope.study import effects
from composcope.study.effects import Side, compare


def claims(rows: Iterable[Row], room: str) -> list[Row]:
    return [row for row in of_rooms(rows, room) if row.holds is not None]


def findings(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[effects.Comparison]]:
    """The study's effects, those of one finding together."""
    found: dict[tuple[str, str], list[effects.Comparison]] = {}
    for effect in effects.EFFECTS:
        key = effect.where, f"{effect.says}: {name(effect.above)} above {name(effect.below)}"
        found.setdefault(key, []).append(compare(effect, rows))
    return found


# What a reader must know to read what did not come out, by its title.
NOT_SO = {
    "Comparisons of two runs": "A finding is a larger number for the first run than for the second, "
    "measured in up to three ways. Listed are findings that at least one of the ways does not show.",
    "K_max": "By the paper's rule on all of our images, where a single bad one can decide it; by "
    "places alone where labels leave objects out and that was measured. The tables also have K_max "
    "on eight images, as many as the paper counted.",
    "Claims of theory": "Each was tested on a small example. Swing-by: the loss on a combination "
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
        row = k_max_beside_paper(rows, side)
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
