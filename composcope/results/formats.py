"""Rows in other forms: CSV and parquet for programs that read tables, a table for the terminal."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from composcope.errors import InputError
from composcope.files import whole
from composcope.progress import fits, terminal_table
from composcope.results.row import Row, columns, grouped

NUMBERS = ("value", "low", "high")
LISTED = 40  # rows in a table at most


def write_rows_parquet(path: Path, found: Sequence[Row]) -> None:
    """All coordinates as columns; a value that is a word goes into the column `text`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("--parquet needs pyarrow: pip install pyarrow") from None
    # A parquet column has one type; values are numbers but for a few words.
    flat = [row.flat() | {"value": None, "text": None} for row in found]
    for line, row in zip(flat, found, strict=True):
        line["text" if isinstance(row.value, str) else "value"] = row.value
    with whole(path) as partial:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(flat), partial)


def csv_text(found: Sequence[Row]) -> str:
    names = list(columns(found))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in found)
    return text.getvalue()


def rows_table(found: Sequence[Row]) -> tuple[Table | str, ...]:
    """The first rows, without the coordinates that tell where they came from; what all of these
    have in common stands before the table. And how many they are."""
    listed = found[:LISTED]
    names = [name for name in columns(listed) if name not in ("weights", "commit", "date")]
    differ = [
        name for name in names if name in NUMBERS or len({getattr(row, name) for row in listed}) > 1
    ]
    alike = [name for name in names if name not in differ]
    whose = "all of them" if len(listed) == len(found) else "all that are shown"
    heads = [f"{whose}: {assignments(listed[0], alike)}"] if alike else []
    shown = terminal_table(*differ)
    for row in listed:
        shown.add_row(*(escape(short_number(getattr(row, name))) for name in differ))
    shown = shown if fits(shown) else narrow_table(listed, differ)
    return *heads, shown, f"{len(found)} rows, {len(listed)} of them shown"


def narrow_table(listed: Sequence[Row], names: Sequence[str]) -> Table:
    """Where a column for each coordinate has no room: a row names those that it has."""
    places = [name for name in names if name not in ("what", *NUMBERS)]
    first = ["what"] if "what" in names else []
    shown = terminal_table(*first, escape("value [low, high]"))
    shown.add_column("where", overflow="fold")
    for row in listed:
        value = short_number(row.value)
        if row.low is not None:
            value += f" [{short_number(row.low)}, {short_number(row.high)}]"
        cells = (*(getattr(row, name) for name in first), value, assignments(row, places))
        shown.add_row(*map(escape, cells))
    return shown


def assignments(row: Row, names: Sequence[str]) -> str:
    known = {name: getattr(row, name) for name in names}
    return " ".join(f"{name}={short_number(at)}" for name, at in known.items() if at is not None)


def overview(found: Sequence[Row]) -> tuple[Table, str]:
    """What was measured, of how many runs, in how many rows."""
    shown = terminal_table("what", "rows", "runs")
    for what, some in sorted(grouped(found, lambda row: row.what).items()):
        runs = {row.run for row in some if row.run}
        shown.add_row(what, str(len(some)), str(len(runs) or ""))
    return shown, f"{len(found)} rows"


def short_number(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
