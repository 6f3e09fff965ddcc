"""composcope rows --where run=exp1 what=length/k_max

Measurements that ship and those in ./results, each with all its coordinates; without --where, what
was measured of how many runs."""

import sys
from dataclasses import dataclass
from pathlib import Path

from composcope import options
from composcope.errors import InputError
from composcope.progress import tell
from composcope.results import gather, jsonl, where
from composcope.results.formats import csv_text, overview, rows_table, write_rows_parquet
from composcope.study.shipped import HERE, SHIPPED, check_folders, coordinates_of


@dataclass(frozen=True)
class Args:
    where: tuple[str, ...] = ()
    """Coordinates that the rows must have, such as run=exp1 K=6; of several values of one, any;
    intervention= for rows that have none."""
    folders: tuple[Path, ...] = (SHIPPED, HERE)  # Where rows are looked for.
    csv: bool = False  # Print CSV.
    json: bool = False  # Print JSON lines.
    parquet: options.File = None  # Write a parquet file.


def main(args: Args) -> None:
    options.check_one(args, "csv json parquet")
    check_folders("--folders", args.folders)
    if args.parquet and args.parquet.suffix != ".parquet":
        raise InputError(f"--parquet {args.parquet}: the name of the file ends in .parquet")
    found = where(gather(args.folders), **coordinates_of(args.where))
    if args.parquet:
        write_rows_parquet(args.parquet, found)
        print(f"{len(found)} rows are in {args.parquet}   next: pandas.read_parquet(...)")
    elif args.json or args.csv:
        sys.stdout.write(jsonl(found) if args.json else csv_text(found))
    else:
        then = "next: --where name=value for some of them, --csv or --json for all there is"
        tell(*(rows_table(found) if args.where else overview(found)), then)
