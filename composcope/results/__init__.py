"""What was measured: rows, their coordinates and how sure each is; read without other rooms."""

from composcope.results.arrays import read_arrays, write_arrays
from composcope.results.estimate import Estimate, mean, resampled, share, spearman, wilson
from composcope.results.row import (
    Row,
    add_rows,
    check_out,
    digest,
    gather,
    grouped,
    jsonl,
    only,
    own_folder,
    read_rows,
    row,
    tell_rows,
    where,
    with_value,
)

__all__ = ["Estimate", "Row", "add_rows", "check_out", "digest", "gather", "grouped", "jsonl"]
__all__ += ["mean", "only", "own_folder", "read_arrays", "read_rows", "resampled", "row"]
__all__ += ["share", "spearman", "tell_rows", "where", "wilson", "with_value", "write_arrays"]
