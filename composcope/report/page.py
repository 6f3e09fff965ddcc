"""The report: one HTML file with its pictures inside, readable on a phone; a function of rows and pictures.

    page(rows, pictures, times) -> html          ours beside the paper's value, and words computed from both

What is not measured is said to be not measured; no sentence here knows the result beforehand.
"""

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from composcope.report.theory import predicted
from composcope.results import Row

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:1rem;color:#222;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.2rem;border-top:1px solid #ddd;padding-top:1rem}
img{max-width:100%;height:auto;border-radius:4px}figure{margin:1rem 0}figcaption{font-size:.9rem;color:#555}
table{border-collapse:collapse;font-size:.9rem}td,th{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #eee}
.wide{overflow-x:auto}code{background:#f3f3f3;padding:.1rem .3rem;border-radius:3px;word-break:break-all}
.agree{color:#176d2c}.differ{color:#9b2d12}.none{color:#777}
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file and the words under it."""

    section: str
    path: Path
    caption: str


@dataclass(frozen=True)
class Part:
    """A section of the report: what it shows, which claims its table lists, and the command that makes them again."""

    name: str
    title: str
    claims: str  # a regular expression over claim names
    command: str


PARTS = (
    Part(
        "length",
        "Length generalization (Fig. 1, 4, 8; Tables 1 and 2)",
        r"length/(k_max|none)",
        "composcope evaluate RUN",
    ),
    Part(
        "locality",
        "Locality (Fig. 2, 10, 12; scatter)",
        r"locality/(conditional_locality|spearman)",
        "composcope locality RUN",
    ),
    Part("features", "Colour and features (Fig. 5, 7, 11, 13)", r"features/", "composcope features RUN"),
    Part(
        "theory",
        "Theory (sections 3, B, C, D)",
        r"(lemma\d|definition\d|claim\d|corollary\d|equation\d|feature|projective|machine)/",
        "composcope theory",
    ),
    Part("sim", "Structured identity mapping (Swing-by)", r"(sim|swing_by|failure)/", "composcope sim"),
)


def numbers(text: str) -> list[float]:
    """The values the paper gives for one thing: "9 (v3: 7)" has two, the extras in "9+(0-2)" are not among them."""
    plain = re.sub(r"\+\([^)]*\)", "", text).replace("v3:", "")
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", plain)]


def verdict(row: Row) -> tuple[str, str]:
    """(class, words): whether the paper's value lies in our interval, and if not, on which side ours is.

    The rows of a claim say themselves whether it holds.
    """
    if "holds" in row.setting:
        return ("agree", "holds") if row.setting["holds"] else ("differ", "does not hold")
    if row.paper is None or isinstance(row.value, str | None) or not numbers(str(row.paper)):
        return "none", "not in the paper" if row.paper is None else "compare by eye"
    low = row.value if row.low is None else row.low
    high = row.value if row.high is None else row.high
    theirs = numbers(str(row.paper))
    if any(low <= value <= high for value in theirs):
        return "agree", "agrees"
    return "differ", "ours is lower" if high < min(theirs) else "ours is higher" if low > max(theirs) else "differs"


def shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def interval(row: Row) -> str:
    return "" if row.low is None else f" [{shown(row.low)}, {shown(row.high)}]"


def table(rows: Sequence[Row]) -> str:
    """One line a row: what, of which run, ours with its interval, the paper's, and the comparison in words."""
    lines = []
    for row in rows:
        kind, words = verdict(row)
        setting = ", ".join(f"{name} {value}" for name, value in row.setting.items() if name not in ("num", "chance"))
        setting, paper = (row.setting["says"], predicted(row)) if "says" in row.setting else (setting, row.paper or "")
        what = row.claim.partition("/")[2].replace("_", " ")
        cells = (what, row.run, setting, shown(row.value) + interval(row), paper)
        body = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        lines.append(f"<tr>{body}<td class={kind}>{words}</td></tr>")
    head = "".join(f"<th>{name}</th>" for name in ("what", "run", "setting", "ours [95 %]", "paper", "comparison"))
    return f"<div class=wide><table><tr>{head}</tr>{''.join(lines)}</table></div>"


def figure(picture: Picture) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode()
    caption = html.escape(picture.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )


def section(part: Part, rows: Sequence[Row], pictures: Sequence[Picture]) -> str:
    own = [row for row in rows if re.match(part.claims, row.claim)]
    body = table(own) if own else "<p class=none>Not measured yet.</p>"
    figures = "".join(figure(picture) for picture in pictures if picture.section == part.name)
    return f"<h2>{html.escape(part.title)}</h2>{body}{figures}<p>Made by <code>{html.escape(part.command)}</code></p>"


def k_max(rows: Iterable[Row], run: str, claim: str = "length/k_max_paper") -> Row | None:
    """The row of a run's final weights at the paper's places."""
    own = [row for row in rows if row.claim == claim and row.run == run]
    return next((row for row in own if row.setting.get("snapshot", "final") == "final"), None)


def summary(rows: Sequence[Row]) -> list[str]:
    """Five sentences computed from the rows: what composes, what does not, and whether locality goes with it."""
    lines = []
    for run, what in SUBJECTS.items():
        row = k_max(rows, run)
        if row is None:
            lines.append(f"{what}: not measured yet.")
        else:
            paper = f"; the paper: {row.paper}, {verdict(row)[1]}" if row.paper else "; not in the paper"
            lines.append(f"{what}: draws what is asked up to {shown(row.value)}{interval(row)} objects{paper}.")
    return lines


SUBJECTS = {
    "exp1": "Experiment 1 (all labels, trained on 1-3 objects)",
    "exp2": "Experiment 2 (one label)",
    "exp3": "Experiment 3 (list of locations)",
    "exp2l": "Experiment 2L (patch-local)",
    "exp2+local": "Experiment 2 with local conditions at sampling time",
}


def page(rows: Sequence[Row], pictures: Sequence[Picture], times: Mapping[str, float]) -> str:
    """The whole document. `times`: minutes that each part took."""
    said = "".join(f"<li>{html.escape(line)}</li>" for line in summary(rows))
    parts = "".join(section(part, rows, pictures) for part in PARTS)
    took = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{minutes:.1f} min</td></tr>" for name, minutes in times.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1"><title>Composcope: the study</title>'
        f"<style>{STYLE}</style><h1>Local mechanisms of compositional generalization: the study</h1>"
        "<p>Ours beside the paper (Bradley, arXiv 2509.16447). Intervals are 95 %. "
        f"Counts are by our detector, the paper's by eye.</p><ol>{said}</ol>{parts}"
        f"<h2>How long it took</h2><table>{took}</table></html>"
    )
