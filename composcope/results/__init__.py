"""What was measured: rows, their coordinates and how sure each is; read without other rooms."""

from composcope.results.estimate import Estimate, mean, resampled, share, spearman, wilson
from composcope.results.row import (
    Row,
    add_rows,
    check_out,
    columns,
    gather,
    jsonl,
    only,
    read_rows,
    row,
    where,
)

__all__ = [
    "Estimate",
    "Row",
    "add_rows",
    "check_out",
    "columns",
    "gather",
    "jsonl",
    "mean",
    "only",
    "read_rows",
]
__all__ += ["resampled", "row", "share", "spearman", "where", "wilson"]
