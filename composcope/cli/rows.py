"""`composcope rows`: what was measured, as a table or for other programs."""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from composcope.results import Row, columns, gather, jsonl, where
from composcope.results.parquet import write_parquet
from composcope.study.shipped import HERE, SHIPPED, coordinates_of


@dataclass(frozen=True)
class Args:
    """composcope rows --where run=exp1 what=length/k_max

    Measurements that ship and those in ./results, each with all its coordinates."""

    where: tuple[str, ...] = ()
    """Coordinates that the rows must have, such as run=exp1 K=6."""
    folders: tuple[Path, ...] = (SHIPPED, HERE)
    """Where rows are looked for."""
    csv: bool = False
    """Print CSV."""
    json: bool = False
    """Print JSON lines."""
    parquet: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write a parquet file."""


def main(args: Args) -> None:
    found = where(gather(args.folders), **coordinates_of(args.where))
    if args.parquet:
        write_parquet(args.parquet, found)
        print(f"{len(found)} rows are in {args.parquet}   next: pandas.read_parquet(...)")
    elif args.json:
        sys.stdout.write(jsonl(found))
    elif args.csv:
        names = list(columns(found))
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in found)
    else:
        print_table(found)


def print_table(found: list[Row], most: int = 40) -> None:
    """The first rows, without the coordinates that tell where they came from."""
    names = [name for name in columns(found) if name not in ("weights", "commit", "date")]
    shown = Table(*names, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in found[:most]:
        values = (getattr(row, name) for name in names)
        shown.add_row(*("" if value is None else short(value) for value in values))
    console = Console(highlight=False)
    console.print(shown)
    console.print(f"{len(found)} rows, {min(most, len(found))} of them shown")
    console.print("next: --where name=value for fewer, --csv or --json for all of them")


def short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
