"""What was expected of the rows, and what of it did not come out: comparisons of two runs, K_max
beside the paper's, claims of theory. And the tables of comparisons and claims."""

from collections.abc import Iterable, Mapping, Sequence

from composcope.report import marks
from composcope.report.cells import Html, Line, Table, cell, command_cell, html_table
from composcope.report.claim_words import plain_claim
from composcope.report.commands import command
from composcope.report.marks import Verdict, and_list, name, with_interval
from composcope.report.material import k_max_beside_paper, of_rooms
from composcope.report.theory import prediction_text
from composcope.report.tried import TRIED
from composcope.results import Row
from composcope.study import effects
from composcope.study.effects import Side, compare


def claims(rows: Iterable[Row], room: str) -> list[Row]:
    return [row for row in of_rooms(rows, room) if row.holds is not None]


def findings(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[effects.Comparison]]:
    """The study's effects, those of one finding together; by places alone where that is known."""
    found: dict[tuple[str, str], list[effects.Comparison]] = {}
    for effect in effects.EFFECTS:
        key = effect.where, f"{effect.says}: {name(effect.above)} above {name(effect.below)}"
        compared = compare(effect, rows)
        if effect.measurement != effects.PLACES or compared.above:
            found.setdefault(key, []).append(compared)
    return found


# What a reader must know to read what did not come out, by its title.
NOT_SO = {
    "Comparisons of two "
    "runs": "A finding is a larger number for the first run than for the second, "
    "measured in up to four ways. Listed are findings that at least one of the ways does not "
    "show.",
    "K_max": "By the paper's rule on all of our images, where a single bad one can decide it; by "
    "places alone where labels leave objects out and that was measured. The tables also have K_max "
    "on eight images, as many as the paper counted. With each stands what was tried; LOG.md has "
    "the numbers.",
    "Claims of theory": "Each was tested on a small example. Swing-by: the loss on a combination "
    "that was never trained on falls, climbs, and falls again. Where its papers show it, we expect "
    "it from at least half of all random starts.",
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
        # exp1 has the paper's number, but an interval that reaches far below it.
        if said.mark in "▼▲✗" or (row and side == marks.EXP1):
            theirs = marks.paper_words(paper)
            found = f"{name(side)}: {with_interval(row)}, paper {theirs}: {said.words}."
            reached.append(" ".join([found, *filter(None, [TRIED.get(side.run)])]))
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


def comparisons(rows: Sequence[Row]) -> Table:
    """The study's effects: a line a finding and measurement."""
    lines: Iterable[Line] = (
        {
            "where": place,
            "finding": says,
            "measured by": found.effect.measurement.words,
            "seen here?": marks.SEEN[found.agrees],
            "ours [95 %]": f"{with_interval(found.above)} against {with_interval(found.below)}"
            if found.above
            else "",
            "at equal terms?": found.terms,
            "command": commands(found.above, found.below),
        }
        for (place, says), some in findings(rows).items()
        for found in some
    )
    note = "Where: the figure, table or section of the paper; ours are findings it does not have."
    return html_table(lines, note)


def commands(*measured: Row | None) -> Html:
    """Those that make each of two sides again."""
    told = dict.fromkeys(command([row]) for row in measured if row)
    return Html("<br>".join(cell(command_cell(words)) for words in told))


CLAIM_WORDS = {
    "theory": "CPC: a distribution in which each condition determines pixels of its own. LCS: the "
    "local conditional score. F-LCS: the same in features, A x for pixels x; A#p is the "
    "distribution of A x. KL: the Kullback-Leibler divergence. Numbers such as Lemma 1 are the "
    "paper's.",
    "sim": "The task is to learn the identity from clusters of points, a cluster a concept, and to "
    "do it where concepts are combined. mu: how far a cluster is from 0. sigma: how wide it is. s: "
    "how many there are. a_k = sigma_k^2 + mu_k^2 / s, and A has them on its diagonal. Swing-by: "
    "the loss at the unseen combination falls, climbs, and falls again; its numbers are shares of "
    "random starts. d: dimensions. h and d': width of the network. W: its linear map, U U^T where "
    "both layers are tied. Isotropic starts have weights of either sign, positive ones of one "
    "sign, the usual ones are larger. Numbers such as Fig. 3 are those of Yang et al. (2025).",
}


def claim_table(rows: Sequence[Row], room: str) -> Table:
    lines: Iterable[Line] = (
        {
            "claim": str(row.claim),
            "predicted": prediction_text(row),
            "measured [95 %]": with_interval(row),
            "holds?": Verdict("✓", "holds") if row.holds else Verdict("✗", "does not hold"),
            "command": command_cell(command([row])),
        }
        for row in claims(rows, room)
    )
    return html_table(lines, CLAIM_WORDS[room])
