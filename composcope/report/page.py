"""The report: one HTML file that tells the study as a story, from the first picture to how sure we
are.

    page(material(SHIPPED, [results])) -> html

A question a section: picture, answer in words, folded numbers. Two runs of one's own side by side.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from composcope.errors import InputError
from composcope.files import write_text
from composcope.report import cells, marks, words
from composcope.report.drawing import asset, style
from composcope.report.figures import lines_over, met, over_noise
from composcope.report.material import Material, one
from composcope.report.pictures import FIGURE_1, figure_1, gallery, those
from composcope.report.recording import recording
from composcope.report.section_figures import NEAR
from composcope.report.sections import SECTIONS, section
from composcope.results import Row, where
from composcope.study.effects import COMPARED, CONDITIONAL, Side, agreement
from composcope.study.terms import differences

NO_PLACES = "does not apply: its conditions have no places"
NOT_OF_BOTH = marks.Verdict("–", "does not apply to both")
TITLE = "Does a diffusion model compose what it has learned?"
FOOTER = (
    "Made by <code>composcope report</code>. The paper is Bradley, Local Mechanisms of "
    "Compositional Generalization in Conditional Diffusion (arXiv 2509.16447); runs are numbered "
    "as in its version 3. Square brackets are 95 % intervals."
)


def side_by_side(material: Material, runs: Sequence[str]) -> str:
    """Two runs of the user: pictures, curves, and the main measurements that either has."""
    if len(set(runs)) < len(runs):
        raise InputError(
            f"--compare: rows of both have the name {runs[0]}; give two runs whose folders differ "
            "in their names"
        )
    sides = [Side(run) for run in runs]
    for side in sides:
        if not where(material.rows, run=side.run):
            raise InputError(
                f"--compare {side.run}: nothing is measured of it; composcope locality does it, "
                "and composcope evaluate where objects can be counted"
            )
    lines: list[list[cells.Cell]] = []
    for by in COMPARED:
        found = [one(material.rows, side, by.what, **by.coordinates) for side in sides]
        if any(found):
            apply = [by != CONDITIONAL or has_places(material.rows, side) for side in sides]
            both = zip(found, apply, strict=True)
            told = [marks.with_interval(row) if applies else NO_PLACES for row, applies in both]
            said = difference_verdict(found) if all(apply) else NOT_OF_BOTH
            lines.append([by.words, *told, said])
    over = lines_over(material.rows, sides, "length/found")
    trained = {row.trained for _, _, rows in over for row in rows if row.trained}
    near = over_noise(lines_over(material.rows, sides, "locality/near_share"), NEAR)
    shown = those(
        {
            "Places filled with an object.": met(over, min(trained, default=None)),
            "The share of a condition's effect near its place, by noise level.": near,
        }
    )
    head = ("measured", *runs, "which is larger?")
    return (
        f"<section id=compared><h2>{html.escape(runs[0])} beside "
        f"{html.escape(runs[1])}</h2>{figure_1(material, sides)}"
        f"{gallery(shown, 'Nothing over K is measured.')}{cells.Table(head, lines)}"
        "<p class=small>All numbers of both runs stand, with their commands, in the sections "
        "below.</p></section>"
    )


def has_places(rows: Sequence[Row], side: Side) -> bool:
    """False of a run that is known to be asked for words, such as colours: where these act was
    measured, or what it draws, and nothing of places."""
    if where(rows, what=CONDITIONAL.what, **side.about):
        return True
    acts = where(rows, what="locality/overlap", **side.about)
    return not acts and not where(rows, what="length/found", tolerance=None, **side.about)


def difference_verdict(found: Sequence[Row | None]) -> marks.Verdict:
    """Which of two rows is larger, whether their intervals are apart, and what else differs in how
    they were measured; two runs may differ in their training."""
    first, second = found
    if first is None or second is None:
        return marks.NOT_MEASURED
    unlike = "; ".join(differences(first, replace(second, images=first.images)))
    terms = f"; not at equal terms: {unlike}" if unlike else ""
    if first.value == second.value:
        return marks.Verdict("=", f"equal{terms}")
    more = first.estimate.value > second.estimate.value
    larger, smaller = (first, second) if more else (second, first)
    words = {"apart": "intervals apart", "overlap": "intervals overlap"}
    said = f"{larger.run}, {words[agreement(larger, smaller)]}{terms}"
    return marks.Verdict(">" if more else "<", said)


def first_screen(material: Material, links: Mapping[str, str]) -> str:
    found = words.facts(material.rows)
    item = "<li><strong>{}</strong><span>{}</span></li>"
    facts = "".join(item.format(number, html.escape(text)) for number, text in found)
    contents = [f'<a href="#{at}">{html.escape(question)}</a>' for at, question in links.items()]
    return (
        f"<h1>{TITLE}</h1><p class=lead>{html.escape(words.headline(material.rows))}</p>"
        f"<div class=first><div>{figure_1(material)}</div><div><ul class=facts>{facts}</ul>"
        "<p class=small>K is the number of objects asked for; a condition is one of them, at its "
        "place. A patch-local network sees the image in patches. Each picture is the first that "
        "the model drew, none is chosen. ✓: all objects are in place. A red cross marks a place "
        "without its object; +1 is one object more than asked for. Click a picture or figure to "
        f"enlarge it.</p><nav>{''.join(contents)}</nav></div></div>"
    )


def write_page(out: Path, material: Material, compare: Sequence[str] = ()) -> Path:
    path = page_path(out)
    write_text(path, page(material, compare))
    return path


def page_path(out: Path) -> Path:
    """In a folder, or the file that `out` names by ending in .html."""
    path = out if out.suffix == ".html" else out / "index.html"
    if out.suffix != ".html" and out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: a folder, or a page whose name ends in .html")
    return path


def page(material: Material, compare: Sequence[str] = ()) -> str:
    """The whole document, with two runs side by side if they are named."""
    links = {shown.name: shown.question for shown in SECTIONS}
    body = []
    with style():
        if compare:
            links = {"compared": f"{compare[0]} beside {compare[1]}", **links}
            body.append(side_by_side(material, compare))
        body += [section(shown, material) for shown in SECTIONS]
    samples = {marks.name(side): some for side in FIGURE_1 if (some := material.samples_of(side))}
    maps = {marks.name(side): kept for side in FIGURE_1 if (kept := material.maps_of(side))}
    moved = recording(samples, maps)
    if moved:
        links["moved"] = "Try it yourself"
        body.append(f"<section id=moved><h2>Try it yourself</h2>{moved}</section>")
    text = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        f"<title>Composcope: {TITLE}</title>{asset('page.css')}</head>"
        f"<body><main>{first_screen(material, links)}{''.join(body)}</main>"
        f"<footer class=small><p>{FOOTER}</p></footer>"
        f"<dialog aria-label=Enlarged></dialog>{asset('page.js')}</body></html>"
    )
    return re.sub(r"(?<=[\d\]]) (?=%)", "\N{NO-BREAK SPACE}", text)
