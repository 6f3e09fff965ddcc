"""The report: one HTML file with its pictures inside, readable on a phone; a function of rows and pictures.

    page(study, pictures, times) -> html          ours beside the paper's value, and words computed from both

What is not measured is said to be not measured; no sentence here knows the result beforehand.
"""

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from composcope.pictures import read_picture
from composcope.report import findings, insides
from composcope.report.evaluation import curve
from composcope.report.findings import POLICIES, Study, Table, Told

LARGEST = (1400, 2400)  # pixels of a picture on the page
FULL = 1080  # wider ones have a line of their own
STYLE = """
body{font:16px/1.55 system-ui,sans-serif;max-width:70rem;margin:auto;padding:1rem;color:#222;background:#fff}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.25rem;border-top:2px solid #ddd;padding-top:1rem;margin-top:2.5rem}
table{border-collapse:collapse;font-size:.875rem;line-height:1.35}tr:first-child{background:#f3f5f7}
td,th{padding:.35rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid #e6e6e6;min-width:3.5rem}
tr>:first-child{white-space:nowrap;font-weight:600;position:sticky;left:0;background:inherit}tr{background:#fff}
.long{min-width:11rem}
.wide{overflow-x:auto;margin:1rem 0}
code{background:#f3f3f3;padding:.1rem .3rem;border-radius:3px;overflow-wrap:anywhere}
.agree{color:#176d2c}.differ{color:#a3280c}.none{color:#666}.paper{border-left:4px solid #c9d6e2;padding-left:.8rem}
.side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));gap:1rem}
figure{margin:0 0 1rem}img{max-width:100%;height:auto}.full{grid-column:1/-1;overflow-x:auto}
.full img{max-width:none;width:max(100%,44rem)}figcaption{font-size:.875rem;color:#444}
nav ul{columns:2 17rem;padding-left:1.2rem}summary{cursor:pointer;font-weight:600;margin:.5rem 0}
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file or a figure, the part it belongs to and the words under it; `folded` away until it is asked for."""

    part: str
    image: Path | Figure
    caption: str
    folded: bool = False


@dataclass(frozen=True)
class Time:
    """How long a part took, and the command that does it again."""

    what: str
    minutes: float
    command: str


@dataclass(frozen=True)
class Part:
    """A section: what the paper finds, what we found (`tell`), the runs of its curves over K, and the commands."""

    name: str
    title: str
    paper: str
    commands: Sequence[str]
    tell: Callable[[Study], Told]
    curves: Callable[[Study], Sequence[str]] = lambda study: ()


THEORY = r"(lemma\d|definition\d|claim\d|corollary\d|equation\d|feature|projective|machine)/"
SIM = r"(sim|swing_by|failure)/"
PARTS = (
    Part(
        "table1",
        "How many objects? (Table 1; Figures 1, 4, 8)",
        "Trained on 1-3 objects and asked for up to twelve, a model with all locations on a grid draws 9 of them (7 in "
        "version 3), with a single label 1 (2), with a list of locations 3; patch-local networks draw 9. Trained on "
        "single objects the patch-local network still draws 6 (5), the global one always 1; from 1-5 colours a model "
        "composes 7 of 8. The paper counts eight images a setting by eye, we by a detector.",
        ("composcope reproduce --preset laptop", "composcope evaluate RUN --num 24 --max 10 --steps 12"),
        lambda study: findings.lengths(study, findings.table_1(study)) + findings.live(study),
        lambda study: ("exp1", "exp2", "exp3", "exp2l", "exp3l", "exp2+local"),
    ),
    Part(
        "table2",
        "Which objects are labelled? (Table 2)",
        "The fewer objects of a training image are labelled, the less far a model composes: 9 with all labels, 5 with "
        "a random number of them, 3 with all but one, 1 with a single one.",
        ("composcope reproduce --preset laptop --only exp1,random,drop-one,exp2",),
        lambda study: findings.lengths(study, POLICIES),
        lambda study: POLICIES,
    ),
    Part(
        "mended",
        "Mended at sampling time (ours)",
        "Has nothing of the kind; it trains a patch-local network (exp2l). Here exp2 stays as it is, and when it draws "
        "every pixel is denoised with the condition near it alone, at the price of more evaluations of the network.",
        ("composcope evaluate exp2 --num 24 --max 10 --steps 12 --intervention local",),
        lambda study: findings.lengths(study, findings.mended(study)),
        findings.mended,
    ),
    Part(
        "others",
        "Other models (ours)",
        "Has none of these: models of your own, and score machines that were never trained.",
        ("composcope evaluate RUN", "python -m composcope.experiments.score_machines"),
        lambda study: findings.lengths(study, findings.others(study)),
        findings.others,
    ),
    Part(
        "locality",
        "Where does the score look? (Figures 2, 10, 12)",
        "Experiment 1 is local in pixels and in conditions. Experiments 2 and 3 lack locality in conditions, "
        "Experiment 3 in pixels too. Over models and snapshots, those that compose further are more local. A model of "
        "CIFAR-10 looks far at high noise, where those of CLEVR are local (Figure 12).",
        ("composcope locality RUN", "composcope locality --scatter study/laptop/results"),
        insides.localities,
    ),
    Part(
        "features",
        "The same in a learned basis (Figures 5, 7, 11, 13)",
        "Colours compose in part, and their directions are nearest to orthogonal in early encoder layers. In SDXL the "
        "cosines within categories exceed those between them most near the bottleneck (no numbers are printed).",
        ("composcope features color", "composcope features --sdxl MODEL"),
        insides.features,
    ),
    Part(
        "theory",
        "Theory (sections 3, B, C, D)",
        "A conditional projective composition has a local conditional score, exactly (Lemma 1); near such a one "
        "the error is bounded (Lemma 2); in a feature space noise and features nearly commute (Claim 2).",
        ("composcope theory",),
        lambda study: insides.claims(study, THEORY),
    ),
    Part(
        "sim",
        "Structured identity mapping (Yang et al. 2025)",
        "Concepts are learned in the order of their strength, and the loss of an unseen combination may first fall, "
        "then rise, then fall again (Swing-by).",
        ("composcope sim", "composcope sim --circles --images 16000"),
        lambda study: [*insides.claims(study, SIM), *insides.circles(study)],
    ),
)


def cell(value: findings.Cell) -> str:
    kind, words = value if isinstance(value, tuple) else ("long" if len(value) > 40 else "", value)
    return f"<td class='{kind}'>{html.escape(words)}</td>"


def table(shown: Table) -> str:
    """Columns that are empty in every line are left out; what is wider than the screen scrolls in its own box."""
    kept = [i for i in range(len(shown.head)) if any(line[i] for line in shown.lines)]
    head = "".join(f"<th>{html.escape(shown.head[i])}</th>" for i in kept)
    body = "".join(f"<tr>{''.join(cell(line[i]) for i in kept)}</tr>" for line in shown.lines)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def tell(told: Told) -> str:
    return "".join(table(one) if isinstance(one, Table) else f"<p>{html.escape(one)}</p>" for one in told)


def encoded(image: Path | Figure) -> tuple[str, int]:
    """As base64 of a WebP, which is a tenth of the PNG; and its width."""
    drawn = io.BytesIO()
    if isinstance(image, Figure):
        image.savefig(drawn, format="png", dpi=150)
    small = Image.fromarray(read_picture(drawn.getvalue() if isinstance(image, Figure) else image))
    small.thumbnail(LARGEST)
    out = io.BytesIO()
    small.save(out, "WEBP", quality=80)
    return base64.b64encode(out.getvalue()).decode(), small.width


def figure(picture: Picture) -> str:
    words, (data, width) = html.escape(picture.caption), encoded(picture.image)
    image = f'<img alt="{words}" src="data:image/webp;base64,{data}">'
    return f"<figure class={'full' if width > FULL else 'part'}>{image}<figcaption>{words}</figcaption></figure>"


def figures(pictures: Sequence[Picture]) -> str:
    """Side by side where there is room; the folded ones under a line that opens them."""
    first, rest = ("".join(figure(p) for p in pictures if p.folded == folded) for folded in (False, True))
    more = f"<details><summary>More pictures</summary><div class=side>{rest}</div></details>" if rest else ""
    return f"<div class=side>{first}</div>{more}"


def curves(part: Part, study: Study) -> list[Picture]:
    """Figure 1 as curves: shares of images, and objects found, over K."""
    runs = [run for run in part.curves(study) if "length/found" in study.of(run)]
    own = [row for run in runs for row in study.rows if row.run == run and row.setting.get("conditions") != "random"]
    rows = [row for row in own if row.setting.get("snapshot", "final") == "final"]
    words = {
        "exact": "Share of images that show exactly what was asked",
        "complete": "Share of images in which nothing asked is missing",
        "found": "Objects found at asked places; the dashed line is all of them",
    }
    known = {row.claim for row in rows}
    drawn = {f"length/{name}": said for name, said in words.items() if f"length/{name}" in known}
    return [Picture(part.name, curve(rows, claim), said) for claim, said in drawn.items()]


def section(part: Part, study: Study, pictures: Sequence[Picture]) -> str:
    told = part.tell(study)
    own = [*(picture for picture in pictures if picture.part == part.name), *curves(part, study)]
    body = tell(told) if told else "<p class=none>Not measured yet.</p>"
    commands = ", ".join(f"<code>{html.escape(command)}</code>" for command in part.commands)
    return (
        f"<h2 id={part.name}>{html.escape(part.title)}</h2>"
        f"<p class=paper><b>The paper:</b> {html.escape(part.paper)}</p>"
        f"{body}{figures(own)}<p>Made by {commands}</p>"
    )


def contents(parts: Iterable[Part]) -> str:
    links = "".join(f"<li><a href=#{part.name}>{html.escape(part.title)}</a>" for part in parts)
    ends = "<li><a href=#findings>What must come out</a>", "<li><a href=#times>How long it took</a>"
    return f"<nav><ul>{ends[0]}{links}{ends[1]}</ul></nav>"


def duration(times: Iterable[Time]) -> Table:
    return Table(("what", "minutes", "command"), [(time.what, f"{time.minutes:.1f}", time.command) for time in times])


SHIPPED = (
    "Rows that are called shipped were measured before and come with the package, with the weights they belong to."
)


def page(study: Study, pictures: Sequence[Picture] = (), times: Sequence[Time] = ()) -> str:
    """The whole document."""
    said = "".join(f"<li>{html.escape(line)}</li>" for line in findings.summary(study))
    parts = [part for part in PARTS if part.name != "others" or part.tell(study)]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1"><title>Composcope: the study</title>'
        f"<style>{STYLE}</style><h1>Local mechanisms of compositional generalization: the study</h1>"
        "<p>Ours beside the paper (Bradley, arXiv 2509.16447; experiments numbered as in version 3). K_max is the "
        "number of objects up to which a model draws what it is asked for. Intervals are 95 %. "
        f"{SHIPPED if study.shipped else ''}</p><ol>{said}</ol>{contents(parts)}"
        f"<h2 id=findings>What must come out</h2>{tell(findings.effects(study))}"
        f"{''.join(section(part, study, pictures) for part in parts)}"
        f"<h2 id=times>How long it took</h2>{table(duration(times)) if times else '<p>Not recorded.</p>'}</html>"
    )
