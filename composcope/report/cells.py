"""Tables and their cells as HTML; a table becomes a stack of cards where the screen is narrow, so
that none is ever cut."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from composcope.report.marks import Verdict


@dataclass(frozen=True)
class Html:
    """Text that is HTML already."""

    text: str


Cell = str | Verdict | Html


def cell(value: Cell) -> str:
    if isinstance(value, Html):
        return value.text
    if isinstance(value, Verdict):
        return f"<b class=mark>{value.mark}</b> {html.escape(value.words)}"
    return prose(value)


def prose(text: str) -> str:
    """Words as HTML."""
    return unbroken(html.escape(text))


def unbroken(text: str) -> str:
    """No line ends inside the brackets of an interval."""
    return re.sub(r"\[[^]]+\]", lambda found: found[0].replace(" ", "&nbsp;"), text)


@dataclass(frozen=True)
class Table:
    """Titles of columns, lines of cells, and what a reader must know; as text it is HTML."""

    head: Sequence[str]
    lines: Sequence[Sequence[Cell]]
    note: str = ""
    named: bool = True  # cells carry the titles of their columns; thousands of numbers need none

    def shown(self) -> list[int]:
        """Columns that are empty in every line are left out."""
        return [i for i in range(len(self.head)) if any(line[i] != "" for line in self.lines)]

    def __str__(self) -> str:
        if not self.lines:
            return "<p class=none>Nothing is measured.</p>"
        shown = self.shown()
        titles = "".join(f"<th>{cell(self.head[i])}</th>" for i in shown)
        body = ""
        for line in self.lines:
            cells = (data_cell(self.head[i] if self.named else "", line[i]) for i in shown)
            body += f"<tr>{''.join(cells)}</tr>"
        note = f"<p class=small>{html.escape(self.note)}</p>" if self.note else ""
        return f"{note}<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


Line = dict[str, Cell]  # by the titles of columns


def html_table(lines: Iterable[Line], note: str = "") -> Table:
    """Of lines that have the same columns."""
    every = list(lines)
    return Table(list(every[0]) if every else (), [list(line.values()) for line in every], note)


def data_cell(title: str, value: Cell) -> str:
    """With the title of its column, which a card shows before it."""
    if value == "":
        return "<td class=blank></td>"
    if not title:
        return f"<td>{cell(value)}</td>"
    return f'<td data-head="{html.escape(title)}"><div>{cell(value)}</div></td>'


def command_cell(words: str) -> Cell:
    """A command; no line ends between an option and its value, which for -m may be long."""
    options = r"(?<= )(--[a-z]|-(?!m\b))[\w-]*( [\w.]+)?"
    shown = re.sub(options, r"<span>\g<0></span>", html.escape(words))
    return Html(f"<code>{shown}</code>") if words else ""


def folded(title: str, body: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"
