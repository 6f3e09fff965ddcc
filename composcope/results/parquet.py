"""Rows as a parquet file, for programs that read tables; needs pyarrow."""

from collections.abc import Sequence
from pathlib import Path

from composcope.errors import InputError
from composcope.files import whole
from composcope.results.row import Row


def write_parquet(path: Path, found: Sequence[Row]) -> None:
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
