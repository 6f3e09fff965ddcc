"""Rows in other forms: CSV and parquet for programs that read tables, a table for the terminal."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from composcope.errors import InputError
from composcope.files import whole
from composcope.progress import terminal_table
from composcope.results.row import Row, columns


def write_parquet(path: Path, found: Sequence[Row]) -> None:
    """All coordinates as columns; a value that is a word goes into the column `text`. Needs
    pyarrow."""
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


def rows_table(found: Sequence[Row], most: int = 40) -> tuple[Table, str]:
    """The first rows, without the coordinates that tell where they came from; and how many they
    are."""
    names = [name for name in columns(found) if name not in ("weights", "commit", "date")]
    shown = terminal_table(*names)
    for row in found[:most]:
        shown.add_row(*(short(getattr(row, name)) for name in names))
    return shown, f"{len(found)} rows, {min(most, len(found))} of them shown"


def short(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
