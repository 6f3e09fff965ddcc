"""Every row of the page, folded by run and by the command that makes it again."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import replace

from composcope.report.cells import Html, Line, Table, cell, command_cell, folded, html_table
from composcope.report.commands import command
from composcope.report.marks import two, with_interval
from composcope.report.material import CALL, call
from composcope.results import Row, grouped

ALONG = ("K", "sigma", "index", "step")  # what a line of numbers runs over
ONE_LINE: tuple[str, ...] = (
    *("radius", "rule", "K", "max_K", "sigma", "level", "pixel", "condition", "part"),
    *("maps", "concept"),
)


def every_number(rows: Sequence[Row]) -> str:
    """All rows, folded by run and command; those that differ in one coordinate on one line."""
    runs = grouped(rows, lambda row: str(row.run or "exact"))
    return "".join(folded(f"{run}: {len(own):,} numbers", calls(own)) for run, own in runs.items())


def calls(rows: Sequence[Row]) -> str:
    made = grouped(rows, lambda row: (row.room, row.detector, *call(row)))
    parts = []
    for own in made.values():
        how = html.escape(coordinates(own[0], (*CALL, "detector")))
        title = f"<h4>{cell(command_cell(command(own)) or 'measured in Python')}</h4>"
        parts.append(f"{title}<p class=small>{how}</p>{number_table(own)}")
    return "".join(parts)


def number_table(rows: Sequence[Row]) -> Table:
    def line(row: Row) -> tuple[str, str | None, tuple]:
        along = next((field for field in ALONG if getattr(row, field) is not None), None)
        fixed = tuple(getattr(row, field) for field in ONE_LINE if field != along)
        return row.what, along, fixed

    lines: list[Line] = []
    for (what, along, _), own in grouped(rows, line).items():
        n = max((row.n for row in own if row.n is not None), default="")
        at = coordinates(own[0], (field for field in ONE_LINE if field != along))
        values = values_along(own, along)
        many = f"n = {n}" if n else ""
        lines.append({"what": what, "where": at, "value [95 % interval]": values, "samples": many})
    return replace(html_table(lines), named=False)


def values_along(rows: Sequence[Row], along: str | None) -> Html:
    ordered = sorted(rows, key=lambda row: getattr(row, along) if along else 0)
    return Html(" ".join(value_at(row, along) for row in ordered))


def value_at(row: Row, along: str | None) -> str:
    at = "" if along is None else f"{along} {two(getattr(row, along))}"
    if along == "index" and row.layer:
        at = row.layer
    return f"<span><small>{html.escape(at)}</small> {html.escape(with_interval(row))}</span>"


def coordinates(row: Row, fields: Iterable[str]) -> str:
    known = [(field, getattr(row, field)) for field in fields]
    return ", ".join(
        f"{field} {coordinate_text(value)}" for field, value in known if value is not None
    )


def coordinate_text(value: object) -> str:
    return f"({', '.join(map(two, value))})" if isinstance(value, tuple) else two(value)
