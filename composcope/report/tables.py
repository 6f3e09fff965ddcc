"""Tables of the page: every number with its interval and the command that makes it again.

A table becomes a stack of cards where the screen is narrow, so that none is ever cut."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from composcope.report.commands import command
from composcope.report.features import COSINES, by_part
from composcope.report.figures import look_of
from composcope.report.marks import (
    SEEN,
    Verdict,
    kind,
    name,
    paper_of,
    paper_words,
    told,
    two,
    verdict,
)
from composcope.report.material import conditional, k_max, of_nine, of_rooms, of_side, one
from composcope.report.theory import predicted
from composcope.report.words import claims, findings
from composcope.results import Row, grouped, where
from composcope.study.effects import HIGH_NOISE, LOW_NOISE, MIDDLE_NOISE, Side, mean_row
from composcope.study.table import BY_NAME, trained_on


@dataclass(frozen=True)
class Html:
    """Text that is HTML already."""

    text: str


Cell = str | Verdict | Html


def cell(value: Cell) -> str:
    if isinstance(value, Html):
        return value.text
    if isinstance(value, Verdict):
        return f"<b class=mark>{value.mark}</b> {html.escape(value.words)}"
    return html.escape(value)


@dataclass(frozen=True)
class Table:
    """Titles of columns, lines of cells, and what a reader must know; as text it is HTML."""

    head: Sequence[str]
    lines: Sequence[Sequence[Cell]]
    note: str = ""

    def shown(self) -> list[int]:
        """Columns that are empty in every line are left out."""
        return [i for i in range(len(self.head)) if any(line[i] != "" for line in self.lines)]

    def __str__(self) -> str:
        if not self.lines:
            return "<p class=none>Nothing is measured.</p>"
        titles = "".join(f"<th>{html.escape(self.head[i])}</th>" for i in self.shown())
        body = []
        for line in self.lines:
            cells = "".join(data_cell(self.head[i], line[i]) for i in self.shown())
            body.append(f"<tr>{cells}</tr>")
        note = f"<p class=small>{html.escape(self.note)}</p>" if self.note else ""
        return (
            f"{note}<table><thead><tr>{titles}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )


def data_cell(title: str, value: Cell) -> str:
    """With the title of its column, which a card shows before it."""
    if value == "":
        return "<td class=blank></td>"
    return f'<td data-head="{html.escape(title)}"><div>{cell(value)}</div></td>'


def code(words: str) -> Html:
    return Html(f"<code>{html.escape(words)}</code>")


def folded(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


def if_known(row: Row | None) -> str:
    return told(row) if row else ""


def swatch(side: Side) -> Html:
    style = look_of(side)
    dot = f'<i class=dot style="background:{style.color}"></i>'
    return Html(f"{dot}<b>{html.escape(name(side))}</b>")


# ----------------------------------------------------------------------------
# How far models compose.

LENGTH_HEAD = (
    "run",
    "trained on",
    "K_max [95 %]",
    "the paper",
    "agrees?",
    "strict rule [95 %]",
    "filled of 9 [95 %]",
    "drawn at K = 0",
    "network calls a step",
    "command",
)


def lengths(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """K_max beside the paper's, a line a model."""
    return Table(LENGTH_HEAD, [length_line(rows, side) for side in sides])


def length_line(rows: Sequence[Row], side: Side) -> list[Cell]:
    run = BY_NAME.get(side.run)
    paper = paper_of(side)
    reached = k_max(rows, side)
    none = one(rows, side, "length/drawn", K=0)
    calls = one(rows, side, "length/evaluations")
    trained = trained_on(run.config()) if run else ""
    drawn = if_known(none)
    if run and run.paper_none_asked and none and not side.intervention:
        drawn += f"; paper {paper_words(run.paper_none_asked)}"
    again: Cell = code(f"composcope reproduce --only {side.run}") if run else ""
    return [
        swatch(side),
        trained if side.intervention is None else kind(side),
        told(reached),
        paper_words(paper),
        verdict(reached, paper),
        if_known(k_max(rows, side, "strict")),
        if_known(of_nine(rows, side)),
        drawn,
        two(calls.value) if calls and calls.value != 1 else "",
        code(command([reached])) if reached else again,
    ]


# ----------------------------------------------------------------------------
# Where scores look.

NOISE = (HIGH_NOISE, MIDDLE_NOISE, LOW_NOISE)


def localities(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """Conditional locality, and the side of the square a pixel looks at, a line a model."""
    head = ["run", "conditional locality [95 %]", "chance"]
    head += [f"square in pixels{band.words} [95 %]" for band in NOISE]
    lines: list[list[Cell]] = []
    for side in sides:
        share = conditional(rows, side)
        squares = of_side(rows, side, "locality/square")
        if share is None and not squares:
            continue
        within = [
            [row for row in squares if band.low <= (row.sigma or 0) < band.high] for band in NOISE
        ]
        chance = two(share.chance) if share and share.chance else ""
        sizes = [told(mean_row(some)) if some else "" for some in within]
        again = code(command([share] if share else squares))
        lines.append([swatch(side), if_known(share), chance, *sizes, again])
    return Table((*head, "command"), lines)


# ----------------------------------------------------------------------------
# How alike concepts are inside a network.


def cosines(rows: Sequence[Row]) -> Table:
    """Mean cosines of the directions of concepts, a line a run, part and noise level."""
    known = [row for row in of_rooms(rows, "features") if row.run]
    lines: list[list[Cell]] = []
    for run, own in grouped(known, lambda row: row.run).items():
        for (maps, layer, level), found in by_part(own).items():
            values = [if_known(found.get(name)) for name in COSINES]
            part = f"{layer} ({maps})" if maps else layer
            lines.append([str(run), part, level, *values, code(command(list(found.values())))])
    head = ("run", "part of the network", "noise", *(f"{name} [95 %]" for name in COSINES))
    note = (
        "A concept's direction is the mean activation with it less the mean without. Between: the "
        "mean cosine of the directions of different concepts, or of different categories of them. "
        "Within: of concepts of one category. Ratio: within over between. Gap: within less between."
    )
    return Table((*head, "command"), lines, note)


# ----------------------------------------------------------------------------
# Every number.

ALONG = ("K", "sigma", "index", "step")  # what a line of numbers runs over
# Equal in all rows that one command makes.
ONE_CALL: tuple[str, ...] = (
    *("snapshot", "images", "weights", "intervention", "asked", "tolerance", "steps", "states"),
    *("seed", "setting", "contrast"),
)
ONE_LINE: tuple[str, ...] = (
    *("radius", "rule", "K", "max_K", "sigma", "level", "pixel", "place", "condition", "part"),
    *("maps", "concept"),
)


def every_number(rows: Sequence[Row]) -> str:
    """All rows, folded by run and command; those that differ in one coordinate on one line."""
    runs = grouped(rows, lambda row: str(row.run or "exact"))
    return "".join(folded(f"{run}: {len(own):,} numbers", calls(own)) for run, own in runs.items())


def calls(rows: Sequence[Row]) -> str:
    made = grouped(rows, lambda row: (row.room, *(getattr(row, field) for field in ONE_CALL)))
    parts = []
    for own in made.values():
        how = html.escape(coordinates(own[0], ONE_CALL))
        title = f"<h4>{code(command(own)).text}</h4>"
        parts.append(f"{title}<p class=small>{how}</p>{numbers(own)}")
    return "".join(parts)


def numbers(rows: Sequence[Row]) -> Table:
    def line(row: Row) -> tuple[str, str | None, tuple]:
        along = next((field for field in ALONG if getattr(row, field) is not None), None)
        fixed = tuple(getattr(row, field) for field in ONE_LINE if field != along)
        return row.what, along, fixed

    lines: list[list[Cell]] = []
    for (what, along, _), own in grouped(rows, line).items():
        ordered = sorted(own, key=lambda row: getattr(row, along) if along else 0)
        shown = " ".join(value_at(row, along) for row in ordered)
        fields = [field for field in ONE_LINE if field != along]
        n = max((row.n for row in own if row.n is not None), default=None)
        lines.append([what, coordinates(own[0], fields), Html(shown), "" if n is None else str(n)])
    return Table(("what", "where", "value [95 % interval]", "n"), lines)


def value_at(row: Row, along: str | None) -> str:
    at = "" if along is None else f"{along} {two(getattr(row, along))}"
    if along == "index" and row.layer:
        at = row.layer
    return f"<span><small>{html.escape(at)}</small> {html.escape(told(row))}</span>"


def coordinates(row: Row, fields: Iterable[str]) -> str:
    known = [(field, getattr(row, field)) for field in fields]
    return ", ".join(f"{field} {spelled(value)}" for field, value in known if value is not None)


def spelled(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(two(part) for part in value) + ")"
    return two(value) if isinstance(value, float | int) else str(value)


# ----------------------------------------------------------------------------
# Comparisons, claims, tolerances.


def comparisons(rows: Sequence[Row]) -> Table:
    """The study's effects: a line a finding and measurement."""
    lines: list[list[Cell]] = []
    for (place, says), some in findings(rows).items():
        for comparison in some:
            both = f"{told(comparison.above)} against {told(comparison.below)}"
            values = both if comparison.above else ""
            by = comparison.effect.measurement.words
            lines.append([place, says, by, SEEN[comparison.agrees], values, comparison.terms])
    head = ("where", "finding", "measured by", "seen here?", "ours [95 %]", "at equal terms?")
    return Table(head, lines)


def claim_table(rows: Sequence[Row], room: str) -> Table:
    lines: list[list[Cell]] = []
    for row in claims(rows, room):
        holds = Verdict("✓", "holds") if row.holds else Verdict("✗", "does not hold")
        again = code(f"composcope {room}")
        lines.append([str(row.claim), predicted(row), told(row), holds, again])
    return Table(("claim", "predicted", "measured [95 %]", "holds?", "command"), lines)


def tolerances(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """K_max of every run at every tolerance it was judged at."""
    lines: list[list[Cell]] = []
    for side in sides:
        judged = [row for row in where(rows, run=side.run) if row.K is not None]
        known = sorted({row.tolerance for row in judged if row.tolerance is not None})
        for tolerance in known:
            found = one(rows, side, "length/k_max", rule="paper", tolerance=tolerance)
            if found and len(known) > 1:
                nine = if_known(one(rows, side, "length/found", K=9, tolerance=tolerance))
                again = code(command([found]))
                lines.append([swatch(side), two(tolerance), told(found), nine, again])
    head = ("run", "tolerance, image sides", "K_max [95 %]", "filled of 9 [95 %]", "command")
    return Table(head, lines)


def detector(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    """The share of failures that the detector's own error may explain, by K."""
    lines: list[list[Cell]] = []
    for side in sides:
        own = of_side(rows, side, "length/error")
        if own:
            ordered = sorted(own, key=lambda row: row.K or 0)
            shares = Html(" ".join(value_at(row, "K") for row in ordered))
            lines.append([swatch(side), shares, code(command(own))])
    note = (
        "The detector misreads some images that show exactly what is asked. This share of an "
        "evaluation's images may fail for that reason alone, and K_max allows for it."
    )
    return Table(("run", "share of images, by K", "command"), lines, note)
