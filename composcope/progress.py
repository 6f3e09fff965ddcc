"""What a user sees while waiting: a bar on standard error with count, rate and time left."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich import progress
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
NARROW = 80  # columns: below this only what is done and the time left have room


class Rate(progress.ProgressColumn):
    """Steps a second since the start of this task."""

    def render(self, task: progress.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.1f}/s" if speed else "", style="cyan")


def console() -> Console:
    """Standard error; nowhere, if it was closed."""
    return Console(quiet=True) if sys.stderr is None else Console(stderr=True)


def bar() -> progress.Progress:
    """A bar with our columns, to which the caller adds tasks; their `description` may change.

    Of the processes of one torchrun only the first shows it."""
    shown = console()
    columns: list[progress.ProgressColumn] = [progress.TaskProgressColumn()]
    if shown.width >= NARROW:
        columns = [progress.BarColumn(), progress.MofNCompleteColumn(), Rate()]
        columns.append(progress.TimeElapsedColumn())
    columns = [progress.TextColumn("{task.description}"), *columns, progress.TimeRemainingColumn()]
    return progress.Progress(*columns, console=shown, disable=os.environ.get("RANK", "0") != "0")


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over `items` under a bar named `what`."""
    with bar() as shown:
        yield from shown.track(items, description=what, total=total)


def tell(*told: Any, json: str | None = None) -> None:
    """What a command says in the end; with `json`, that alone goes to standard output."""
    shown = Console() if json is None else console()
    for one in told:
        plain: dict[str, Any] = dict(markup=False, soft_wrap=True) if isinstance(one, str) else {}
        shown.print(one, highlight=False, **plain)
    if json is not None:
        sys.stdout.write(json)


def terminal_table(*heads: str) -> Table:
    """A table without frames; the caller adds rows."""
    return Table(*heads, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def fits(table: Table) -> bool:
    """Whether no cell is cut in a terminal as wide as this one."""
    return Console(width=10_000).measure(table).maximum <= Console().width


@contextmanager
def live(table: Table) -> Iterator[Live]:
    """A table that is updated in place; it ends with its line, on a terminal or not."""
    shown = console()
    try:
        with Live(table, console=shown, refresh_per_second=2) as updated:
            yield updated
    finally:
        if not shown.is_terminal:
            shown.print()
