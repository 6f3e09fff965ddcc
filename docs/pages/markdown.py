"""Tables of the report as Markdown, which reads on the repository's pages and in the built site."""

import html
import re

from composcope.report.cells import Cell, Html, Table
from composcope.report.marks import Verdict

MARKED = {"*": r"\*", "<": "&lt;", "|": r"\|", "\n": " "}


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return "".join(MARKED.get(letter, letter) for letter in text)


def code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`"


def marked(text: str) -> str:
    """The few marks that the report's cells have: code, bold words, values along a coordinate."""
    text = re.sub(r"<i [^>]*></i>", "", text)
    parts = re.findall(r"<span><small>(.*?)</small> (.*?)</span>", text)
    if parts:
        return "; ".join(plain(html.unescape(f"{at}: {value}")) for at, value in parts)
    for pattern, turned in ((r"<code>(.*)</code>", code), (r"<b>(.*)</b>", bold)):
        match = re.fullmatch(pattern, text)
        if match:
            return turned(html.unescape(match[1]))
    raise ValueError(f"a cell that has no Markdown: {text}")


def bold(text: str) -> str:
    return f"**{plain(text)}**"


def cell(value: Cell) -> str:
    if isinstance(value, Html):
        return marked(value.text)
    if isinstance(value, Verdict):
        return f"{value.mark} {plain(value.words)}"
    return plain(value)


def table(shown: Table) -> str:
    if not shown.lines:
        return "Nothing is measured."
    columns = [i for i in shown.shown() if shown.head[i] != "command"]
    lines = [[plain(shown.head[i]) for i in columns], ["---"] * len(columns)]
    lines += [[cell(line[i]) for i in columns] for line in shown.lines]
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return joined([plain(shown.note), drawn, commands(shown)]).rstrip()


def commands(shown: Table) -> str:
    """The column of commands, for which a page is too narrow, folded away below the table; one that
    makes several lines stands once."""
    if shown.head[-1] != "command":
        return ""
    cells = [
        text
        for line in shown.lines
        if isinstance(line[-1], Html)
        for text in line[-1].text.split("<br>")
    ]
    words = dict.fromkeys(html.unescape(re.sub("</?(code|span)>", "", text)) for text in cells)
    return folded("The commands of these lines", "```sh\n" + "\n".join(words) + "\n```")


def folded(title: str, body: str) -> str:
    """What a reader opens; `markdown` lets the built site read what is inside."""
    return (
        f'<details markdown="1">\n<summary>{html.escape(title)}</summary>\n\n{body}\n\n</details>'
    )


ARGUMENT = re.compile(r"^([a-z_]\w*): ", re.M)


def set_apart(docstring: str) -> str:
    """A docstring as Markdown: what is aligned by hand, formulas and commands stand as they were
    typed; arguments become a list."""
    return "\n\n".join(map(paragraph_of, docstring.split("\n\n")))


def paragraph_of(text: str) -> str:
    if text.startswith("    "):
        return text  # it is set apart already
    if typed(text):
        return "\n".join(f"    {line}" for line in text.splitlines())
    if ARGUMENT.match(text):
        return ARGUMENT.sub(r"- `\1`: ", text)
    return text


def typed(text: str) -> bool:
    """Whether lines and spaces of a paragraph mean something; prose has no three spaces in a row."""
    line = "\n" not in text and not text.endswith((".", ":", "?"))
    command = line and text.startswith(("composcope ", "python -m "))
    formula = line and (" = " in text or " -> " in text)
    return command or formula or re.search(r"\S {3,}\S", text) is not None


def picture(path: str, words: str) -> str:
    return f"![{words}]({path})\n\n*{plain(words)}*"


def joined(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
