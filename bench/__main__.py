"""`python -m bench [name ...]`: run the benchmarks (all, or those named) and print what they
measured as one table.

Numbers on a shared machine are noisy: every file reports medians, and compares two things within
one run as a ratio."""

import importlib
import pkgutil
import sys

from rich.console import Console
from rich.table import Table

import bench


def names() -> list[str]:
    return [
        module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__"
    ]


def main() -> None:
    table = Table("bench", "what", "measured", "floor or remark", title="composcope bench")
    for name in sys.argv[1:] or names():
        if name not in names():
            sys.exit(f"bench: there is no benchmark {name!r}; there are {', '.join(names())}")
        print(f"bench: {name} ...", file=sys.stderr)
        for what, measured, floor in importlib.import_module(f"bench.{name}").rows():
            table.add_row(name, what, measured, floor)
        table.add_section()
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
