"""What a user sees while waiting: a bar on standard error with the count, the rate and the time left."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

T = TypeVar("T")


class Rate(ProgressColumn):
    """Steps a second since the start of this task."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.1f}/s" if speed else "", style="cyan")


def bar() -> Progress:
    """A rich Progress with our columns; the caller adds tasks. `description` may be updated with the latest numbers."""
    text, count, left = TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(text, BarColumn(), count, Rate(), TimeElapsedColumn(), left, console=Console(stderr=True))


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over `items` under a bar named `what`."""
    with bar() as progress:
        yield from progress.track(items, description=what, total=total)
