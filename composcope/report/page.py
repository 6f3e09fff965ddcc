"""The report: one HTML file that tells the study as a story, from the first picture to how sure we are.

    page(material(SHIPPED, [results])) -> html        a question a section: picture, answer, folded numbers

Every sentence and figure is a function of rows and kept arrays; with none of a thing the page says so in place.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from composcope.errors import InputError
from composcope.report import features, figures, locality, tables, words
from composcope.report.drawing import mosaic, multiple, png, strip, style, svg
from composcope.report.figures import Line
from composcope.report.material import FINAL, Material, of_side, one
from composcope.report.style import SCRIPT, STYLE
from composcope.report.tables import folded, swatch
from composcope.report.theory import circles_figure, toy_figures
from composcope.report.words import EXP1, EXP2, EXP2L, MENDED, POLICIES, kind, name
from composcope.results import Row, where
from composcope.results.samples import Samples
from composcope.study.table import BY_NAME, INTERVENTIONS, RUNS, Intervention, Side

TITLE = "Does a diffusion model compose what it has learned?"
SHOWN_K = (1, 3, 6, 9)  # the columns of Figure 1
FIGURE_1 = (EXP1, EXP2, MENDED, EXP2L)
SIDES = tuple(Side(run.name) for run in RUNS)
MAIN = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
FORCED = (EXP2, *(Side("exp2", some) for some in INTERVENTIONS), EXP2L, Side("exp2l-wide"))
SEEDS = tuple(Side(run) for run in ("exp1", "exp1-seed1", "exp2", "exp2-seed1", "exp3", "exp3-seed1"))
HOLD = 5  # times that the last frame of an animation is shown


@dataclass(frozen=True)
class Shown:
    """A figure with the words under it; `wide` ones have a line of their own."""

    figure: Figure
    words: str
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A question as a reader asks it, and the parts of its answer, each a function of the material."""

    name: str
    question: str
    paper: str  # what the paper says of it
    pictures: Callable[[Material], str]
    answer: Callable[[Material], Sequence[str]]
    numbers: Callable[[Material], str]


# ----------------------------------------------------------------------------
# Pictures.


def drawn(shown: Shown) -> str:
    text = html.escape(shown.words)
    button = f'<button class=zoom title="Enlarge">{svg(shown.figure, shown.words)}</button>'
    return f'<figure class="{"wide" if shown.wide else "part"}">{button}<figcaption>{text}</figcaption></figure>'


def gallery(shown: Sequence[Shown], none: str) -> str:
    if not shown:
        return missing(none)
    return f"<div class=figures>{''.join(map(drawn, shown))}</div>"


def missing(what: str) -> str:
    return f"<p class=none>{html.escape(what)}</p>"


def sizes(width: int) -> str:
    """Widths of a picture on the page as CSS: usual, on a large screen and a small one, and enlarged there."""
    wanted = {"--usual": 128, "--big": 192, "--small": 64, "--large": 640, "--phone": 320}
    return ";".join(f"{key}:{multiple(width, value)}px" for key, value in wanted.items())


def shot(samples: Samples | None, K: int) -> str:
    """The first image that was asked for K conditions, a cross where one is missing, and the count."""
    numbers = samples.of(K) if samples else []
    if samples is None or not numbers:
        return '<figure class="shot blank none"><span>not drawn</span></figure>'
    i = numbers[0]
    asked, met = samples.record.asked[i], samples.record.met[i]
    verdict = "✓" if all(met) else "✗"
    extra = f", +{samples.extra(i)}" if samples.extra(i) else ""
    count = f"{sum(met)} of {K}{extra}"
    alt = f"{samples.about.get('run')} asked for {K}: {sum(met)} there, {samples.extra(i)} extra"
    lost = [place for place, there in zip(asked, met, strict=True) if not there and not isinstance(place, str)]
    image = f'<img class=pixels style="{sizes(samples.images.shape[2])}" alt="{html.escape(alt)}" src="{png(samples.images[i])}">'
    return (
        f"<figure class=shot><button class=zoom title=Enlarge><span class=over>{image}{crossed(lost)}</span></button>"
        f"<figcaption><b>{verdict}</b> {count}</figcaption></figure>"
    )


def crossed(places: Sequence) -> str:
    """A thin red cross at each place, over a picture."""
    marks = "".join(
        f'<path d="M{100 * u - 3:.1f} {100 * v - 3:.1f}l6 6m0-6l-6 6"/>' for u, v in places
    )
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" fill="none" stroke-width="1.6" aria-hidden="true">'
        f'<g stroke="#fff" stroke-width="3">{marks}</g><g stroke="#d00030">{marks}</g></svg>'
    )


def figure_1(material: Material, sides: Sequence[Side] = FIGURE_1) -> str:
    """Columns K = 1, 3, 6, 9; a row a model; every picture the first from its seed, not chosen."""
    parts = ["<span class=corner></span>", *(f"<span class=k>K = {K}</span>" for K in SHOWN_K)]
    for side in sides:
        title = name(side) if side.intervention != MENDED.intervention else f"{side.run}, mended"
        parts.append(f"<div class=who><b>{html.escape(title)}</b>{html.escape(kind(side))}</div>")
        parts += [shot(material.samples_of(side), K) for K in SHOWN_K]
    return f"<div class=one>{''.join(parts)}</div>"


def sheets(material: Material) -> str:
    """All images that are kept of every model: a row a K."""
    parts = []
    for samples in material.samples:
        if samples.about.get("snapshot") not in FINAL:
            continue
        Ks = sorted({len(asked) for asked in samples.record.asked})
        columns = max(len(samples.of(K)) for K in Ks)
        blank = np.full((1, *samples.images.shape[1:]), 255, np.uint8)
        ordered = []
        for K in Ks:
            ordered.append(samples.images[samples.of(K)])
            ordered += [blank] * (columns - len(samples.of(K)))
        picture = mosaic(np.concatenate(ordered), columns)
        width = picture.shape[1]
        about = samples.about
        label = " + ".join(str(part) for part in (about.get("run"), about.get("intervention")) if part)
        text = f"{label}: rows K = {', '.join(map(str, Ks))}"
        size = f"--usual:{width}px;--big:{width}px;--small:{width}px;--large:{multiple(width, 768)}px;--phone:{width}px"
        image = f'<img class=pixels style="{size}" alt="{html.escape(text)}" src="{png(picture)}">'
        parts.append(f"<figure><button class=zoom title=Enlarge>{image}</button><figcaption>{html.escape(text)}</figcaption></figure>")
    return f"<div class=sheets>{''.join(parts)}</div>" if parts else missing("No images are kept.")


def walks(material: Material) -> str:
    """How one image of each model comes out of the same noise: the denoised image of every noise level."""
    parts = []
    for side in (EXP1, EXP2, MENDED):
        samples = material.samples_of(side)
        if samples is None or not len(samples.frames):
            continue
        frames = [*samples.frames, *[samples.frames[-1]] * HOLD]
        height, width = samples.frames.shape[1:3]
        w = multiple(width, 192)
        K = len(samples.record.walked)
        text = f"{name(side)}, asked for {K}: the denoised image from sigma {samples.sigmas[0]:.0f} to 0"
        css = f"--w:{w}px;--h:{w * height // width}px;--n:{len(frames)};--time:{0.28 * len(frames):.1f}s"
        ground = f"background-image:url({png(strip(frames))})"
        parts.append(
            f'<figure><div class=walk role=img aria-label="{html.escape(text)}" style="{css};{ground}"></div>'
            f"<figcaption>{html.escape(name(side))}, K = {K}</figcaption></figure>"
        )
    if not parts:
        return missing("No denoising is kept to be shown here; composcope evaluate keeps one.")
    return f"<h3>Out of the noise</h3><div class=walks>{''.join(parts)}</div>"


# ----------------------------------------------------------------------------
# The figures of each section.


def lines_over(rows: Sequence[Row], sides: Sequence[Side], what: str) -> dict[Side, tuple[str, list[Row]]]:
    found = {side: (name(side), of_side(rows, side, what)) for side in sides}
    return {side: line for side, line in found.items() if line[1]}


def k_max_lines(rows: Sequence[Row], sides: Sequence[Side]) -> list[Line]:
    lines = []
    for side in sides:
        paper = BY_NAME[side.run].paper_k_max if side.run in BY_NAME and not side.intervention else ()
        lines.append(Line(side, name(side), one(rows, side, "length/k_max", rule="paper"), paper))
    return lines


def measured(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.row is not None]


K_MAX_WORDS = (
    "K_max is the largest K such that a model succeeds at K and at every number below it.",
    "Success is the paper's rule: up to as many objects as in training, all of them in every image; beyond, never more "
    "than two missing, and all of them in more than a quarter of the images. An object counts within a tenth of the "
    "image's side of its place. One bad image in training's range is enough to fail, so K_max is harsh: the mean number "
    "of objects drawn, above, says more.",
    "Where the detector itself may misread an image, as many failures are allowed. The strict rule is ours: all objects "
    "in at least half of the images, at every K, and surely in more than a quarter.",
)


def compose_figures(material: Material) -> str:
    shown = []
    lines = lines_over(material.rows, MAIN, "length/found")
    if lines:
        text = "Objects drawn where they were asked, a mean over images; thin bars are 95 % intervals. Grey: as many as in training."
        shown.append(Shown(figures.filled(lines, 3), text))
    found = measured(k_max_lines(material.rows, SIDES))
    if found:
        shown.append(Shown(figures.forest(found, "$K_{max}$, the paper's rule"), "K_max of every run beside the paper's."))
    text = "How K_max is told (an example): each square is one of eight images. K_max is the last K before the first cross."
    shown.append(Shown(figures.rule(), text))
    explained = "".join(f"<p>{html.escape(text)}</p>" for text in K_MAX_WORDS)
    return (
        f"<div class=figures>{''.join(map(drawn, shown))}<div class=small>{explained}</div></div>"
        f"{folded('Images of every model', sheets(material))}"
    )


def look_figures(material: Material) -> str:
    shown = []
    maps = {name(side): kept for side in (EXP1, EXP2, Side("exp3"), EXP2L) if (kept := material.maps_of(side))}
    if maps:
        text = (
            "What one pixel of the denoised image (ring) looks at in the noisy one, bright: strongly; a cross for each "
            "of four conditions, as bright as it acts on that pixel. In a local model only the nearest cross is bright."
        )
        shown.append(Shown(figures.looks_at(maps), text, wide=True))
    sides = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
    near = lines_over(material.rows, sides, "locality/near_share")
    if near:
        chance = next((row.chance for _, rows in near.values() for row in rows), None)
        text = "Of what a condition changes, the share near its own place, over noise levels."
        shown.append(Shown(figures.over_noise(near, "share near the place", chance), text))
    square = lines_over(material.rows, sides, "locality/square")
    if square:
        text = "The square around a pixel that holds 90 % of what it looks at: its side, a mean over pixels."
        shown.append(Shown(figures.over_noise(square, "side of the square, pixels", None), text))
    points = locality.dots(material.rows)
    if points:
        text = "Every dot is a model at a moment of its training: how far K_max exceeds training, and conditional locality."
        shown.append(Shown(locality.scatter(points), text))
    return gallery(shown, "Where scores look is not measured; composcope locality exp1 does it.")


def forced_figures(material: Material) -> str:
    shown = []
    lines = lines_over(material.rows, (EXP2, MENDED, EXP2L, Side("exp2l-wide"), EXP1), "length/found")
    if lines:
        shown.append(Shown(figures.filled(lines, 3), "Objects drawn where they were asked, with and without forced locality."))
    found = measured([Line(side, name(side), one(material.rows, side, "length/found", K=9)) for side in FORCED])
    if found:
        text = "Drawn of nine asked. Behind the names, in brackets: how far a condition is heard, in image sides."
        shown.append(Shown(figures.forest(found, "drawn of 9 asked"), text))
    return gallery(shown, "Not measured; composcope evaluate exp2 --intervention local does it.") + walks(material)


def label_figures(material: Material) -> str:
    shown = []
    lines = lines_over(material.rows, POLICIES, "length/found")
    labelled = {side: (f"{label}: {kind(side)}", rows) for side, (label, rows) in lines.items()}
    if lines:
        shown.append(Shown(figures.filled(labelled, 3), "Objects drawn where they were asked, by which objects were labelled."))
        found = k_max_lines(material.rows, POLICIES)
        shown.append(Shown(figures.forest(found, "$K_{max}$, the paper's rule"), "K_max by label policy, beside Table 2."))
    return gallery(shown, "Not measured; composcope reproduce --only exp1 random drop-one exp2 does it.")


def elsewhere_figures(material: Material) -> str:
    shown = []
    lines = lines_over(material.rows, (Side("color"), Side("color-three")), "length/found")
    if lines:
        shown.append(Shown(figures.filled(lines, 5), "Colours asked for and drawn."))
    own = [row for row in material.rows if row.what.startswith("features/")]
    for run in dict.fromkeys(row.run for row in own):
        hidden = where(own, run=run, maps=["hidden", None])
        if any(row.index is not None for row in hidden):
            text = f"{run}: mean cosine of the directions of concepts, from the first layer to the last."
            figure = features.profile(hidden)
            shown.append(Shown(figure, text, wide=bool(figure.get_figwidth() > 6)))
        if where(hidden, part="mean", level="high") and where(hidden, what="features/within"):
            text = f"{run}: cosines within and between categories, in parts of the network and in its output."
            shown.append(Shown(features.spaces(hidden), text))
    for about, kept in material.matrices:
        named = features.level_matrices(kept, "high")
        if named:
            text = f"{about.get('run')}: cosines of every pair of concepts at high noise."
            shown.append(Shown(features.matrices(named, list(kept["concepts"])), text, wide=True))
    return gallery(shown, "Not measured; composcope features color does it.")


def theory_figures(material: Material) -> str:
    shown = []
    for room, folder in material.toys.items():
        for figure, text in toy_figures(room, folder):
            shown.append(Shown(figure, f"{text}.", wide=bool(figure.get_figwidth() > 6)))
    circles = where(material.rows, what="circles/accuracy")
    more = []
    if circles:
        longest = max(circles, key=lambda row: row.step or 0)
        some = where(circles, contrast=longest.contrast, seed=longest.seed)
        text = f"Circles drawn by a diffusion model along its training; contrast {longest.contrast:g}, seed {longest.seed}."
        more.append(Shown(circles_figure(some), text, wide=True))
    first = gallery(shown[:2], "Not measured; composcope theory and composcope sim do it.")
    rest = shown[2:] + more
    return first + (folded("More figures of theory", gallery(rest, "")) if rest else "")


def sure_figures(material: Material) -> str:
    found = [Line(side, name(side), one(material.rows, side, "length/found", K=9)) for side in SEEDS]
    shown = []
    if measured(found):
        text = "The same experiment trained from another seed: drawn of nine asked."
        shown.append(Shown(figures.forest(found, "drawn of 9 asked"), text))
    local = [Line(side, name(side), one(material.rows, side, "locality/conditional_locality")) for side in SEEDS]
    if measured(local):
        text = "The same: conditional locality."
        shown.append(Shown(figures.forest(local, "conditional locality"), text))
    return gallery(shown, "Seeds are not measured.")


# ----------------------------------------------------------------------------
# The sections.


def of_rooms(rows: Sequence[Row], *rooms: str) -> list[Row]:
    return [row for row in rows if row.what.startswith(tuple(f"{room}/" for room in rooms))]


def of_runs(rows: Sequence[Row], sides: Sequence[Side]) -> list[Row]:
    return where(of_rooms(rows, "length"), run=list({side.run for side in sides}))


def every(rows: Sequence[Row]) -> str:
    return folded(f"All {len(rows):,} numbers, by run", tables.every_number(rows)) if rows else ""


def known_sides(material: Material) -> list[Side]:
    """The study's runs, then all others that were evaluated: score machines, runs of one's own."""
    others = dict.fromkeys(row.run for row in where(material.rows, what="length/k_max") if row.run)
    return [*SIDES, *(Side(run) for run in others if run not in BY_NAME)]


def compose_numbers(material: Material) -> str:
    return tables.lengths(material.rows, known_sides(material)) + every(of_rooms(material.rows, "length"))


def forced_numbers(material: Material) -> str:
    rows = [row for row in of_runs(material.rows, FORCED) if row.intervention or row.run != "exp2"]
    return tables.lengths(material.rows, FORCED) + every(rows)


def theory_numbers(material: Material) -> str:
    parts = [f"<h3>{title}</h3>{tables.claim_table(material.rows, room)}" for room, title in THEORY_TITLES.items()]
    return "".join(parts) + every(of_rooms(material.rows, "circles"))


THEORY_TITLES = {"theory": "The paper's theory", "sim": "Structured Identity Mapping"}


def sure_numbers(material: Material) -> str:
    sides = known_sides(material)
    return (
        f"<h3>Comparisons</h3>{tables.comparisons(material.rows)}"
        f"<h3>Seeds</h3>{tables.lengths(material.rows, SEEDS)}"
        f"<h3>Other tolerances</h3>{tables.tolerances(material.rows, sides)}"
        "<h3>The detector's own error</h3><p class=small>Of images that show exactly what is asked, the detector misreads "
        "some. This share of an evaluation's images may fail for that reason alone, and K_max allows for it.</p>"
        f"{tables.detector(material.rows, sides)}"
    )


def not_so(material: Material) -> str:
    lines = words.not_so(material.rows, SIDES)
    if not lines:
        return missing("Nothing that was measured came out otherwise.")
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<details open><summary>What did not come out ({len(lines)})</summary><ul class=small>{items}</ul></details>"


SECTIONS = (
    Section(
        "compose",
        "Does it compose?",
        "A model that saw at most three objects draws up to nine when all their places are labelled on a grid, and fails "
        "with a single label or a list of places. The paper counted eight images by eye; here a detector counts.",
        compose_figures,
        lambda m: [words.composes(m.rows, SIDES)],
        compose_numbers,
    ),
    Section(
        "look",
        "Why: where does the score look?",
        "Models that compose have a score that is local: a pixel looks at pixels near it, and hears conditions near it.",
        look_figures,
        lambda m: [words.looks(m.rows)],
        lambda m: every(of_rooms(m.rows, "locality")) or missing("Nothing is measured."),
    ),
    Section(
        "forced",
        "What if it is forced to be local?",
        "A network that sees patches and the conditions inside them composes where the global one failed. Local "
        "conditions at sampling time, without training, are ours.",
        forced_figures,
        lambda m: [words.forced(m.rows)],
        forced_numbers,
    ),
    Section(
        "labels",
        "Which labels?",
        "The fewer objects of a training image are labelled, the less far a model composes (Table 2).",
        label_figures,
        lambda m: [words.policies(m.rows)],
        lambda m: tables.lengths(m.rows, POLICIES) + every(of_runs(m.rows, POLICIES[1:3])),
    ),
    Section(
        "elsewhere",
        "Colours and words: is it local elsewhere?",
        "Colours have no place, yet compose in part; inside the network their directions are nearly orthogonal. In SDXL "
        "pixels are local, conditions are not, and concepts separate in feature space.",
        elsewhere_figures,
        lambda m: words.elsewhere(m.rows),
        lambda m: tables.lengths(m.rows, (Side("color"), Side("color-three"))) + every(of_rooms(m.rows, "features")),
    ),
    Section(
        "theory",
        "What does theory say?",
        "A conditional projective composition has exactly a local conditional score (Lemma 1), and near one the error is "
        "bounded (Lemma 2).",
        theory_figures,
        lambda m: [words.theory(m.rows)],
        theory_numbers,
    ),
    Section(
        "sure",
        "How sure are we?",
        "The paper gives no intervals and one seed a run.",
        sure_figures,
        lambda m: [words.sure(m.rows)],
        sure_numbers,
    ),
)


def section(shown: Section, material: Material, more: str = "") -> str:
    answers = "".join(f"<p class=answer>{html.escape(answer)}</p>" for answer in shown.answer(material))
    return (
        f"<section id={shown.name}><h2>{html.escape(shown.question)}</h2>"
        f"<p class=small><b>The paper:</b> {html.escape(shown.paper)}</p>{shown.pictures(material)}{answers}{more}"
        f"{folded('Numbers, intervals and commands', shown.numbers(material))}</section>"
    )


# ----------------------------------------------------------------------------
# Two runs side by side.

COMPARED = (
    ("K_max, the paper's rule", "length/k_max", {"rule": "paper"}),
    ("K_max, strict rule", "length/k_max", {"rule": "strict"}),
    ("drawn of 3 asked", "length/found", {"K": 3}),
    ("drawn of 6 asked", "length/found", {"K": 6}),
    ("drawn of 9 asked", "length/found", {"K": 9}),
    ("conditional locality", "locality/conditional_locality", {}),
)


def side_by_side(material: Material, runs: Sequence[str]) -> str:
    """Two runs of the user: pictures, curves, and every measurement that either has."""
    sides = [Side(run) for run in runs]
    for side in sides:
        if not where(material.rows, run=side.run):
            raise InputError(f"--compare {side.run}: nothing is measured of it; composcope evaluate does it")
    lines: list[list[tables.Cell]] = []
    for title, what, coordinates in COMPARED:
        found = [one(material.rows, side, what, **coordinates) for side in sides]
        if any(found):
            lines.append([title, *(words.told(row) for row in found), difference(found)])
    shown = []
    over = lines_over(material.rows, sides, "length/found")
    if over:
        trained = {row.trained for _, rows in over.values() for row in rows}
        shown.append(Shown(figures.filled(over, min(filter(None, trained), default=None)), "Objects drawn where they were asked."))
    near = lines_over(material.rows, sides, "locality/near_share")
    if near:
        shown.append(Shown(figures.over_noise(near, "share near the place", None), "Where conditions act, over noise levels."))
    own = where(material.rows, run=list(runs))
    head = ("measured", runs[0], runs[1], "which is larger?")
    return (
        f"<section id=compared><h2>{html.escape(runs[0])} beside {html.escape(runs[1])}</h2>{figure_1(material, sides)}"
        f"{gallery(shown, 'Nothing over K is measured.')}{tables.table(head, lines)}{every(own)}</section>"
    )


def difference(found: Sequence[Row | None]) -> words.Verdict:
    """Which of two rows is larger, and whether their intervals are apart."""
    first, second = found
    if first is None or second is None or None in (first.value, second.value):
        return words.NOT_MEASURED
    a, a_low, a_high = locality.edges(first.estimate)
    b, b_low, b_high = locality.edges(second.estimate)
    if a == b:
        return words.Verdict("=", "equal")
    apart = "intervals apart" if a_low > b_high or b_low > a_high else "intervals overlap"
    return words.Verdict(">" if a > b else "<", f"{first.run if a > b else second.run}, {apart}")


# ----------------------------------------------------------------------------
# The whole document.


def first_screen(material: Material, links: Mapping[str, str]) -> str:
    facts = "".join(
        f"<li><strong>{fact.number}</strong><span>{html.escape(fact.words)}</span></li>" for fact in words.facts(material.rows)
    )
    contents = "".join(f'<a href="#{anchor}">{html.escape(question)}</a>' for anchor, question in links.items())
    return (
        f"<h1>{TITLE}</h1><p class=lead>{html.escape(words.headline(material.rows))}</p>"
        f"<div class=first><div>{figure_1(material)}</div><div><ul class=facts>{facts}</ul>"
        "<p class=small>Pictures: the first from its seed, none chosen. ✓ all asked objects are there; a red cross marks "
        f"a place where one is missing; +1: one more than asked.</p><nav>{contents}</nav></div></div>"
    )


def page(material: Material, compare: Sequence[str] = (), recording: str = "") -> str:
    """The whole document. `compare`: two runs side by side; `recording`: HTML to be embedded after the first screen."""
    with style():
        links = {shown.name: shown.question for shown in SECTIONS}
        body = []
        if compare:
            links = {"compared": f"{compare[0]} beside {compare[1]}", **links}
            body.append(side_by_side(material, compare))
        for shown in SECTIONS:
            body.append(section(shown, material, not_so(material) if shown.name == "sure" else ""))
        first = first_screen(material, links)
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width,initial-scale=1">'
        f"<title>Composcope: {TITLE}</title><style>{STYLE}</style></head><body><main>{first}{recording}{''.join(body)}</main>"
        "<footer class=small><p>Made by <code>composcope report</code>. The paper is Bradley, Local Mechanisms of Compositional "
        "Generalization in Conditional Diffusion (arXiv 2509.16447); runs are numbered as in its version 3. Square brackets "
        f"are 95 % intervals.</p></footer><dialog aria-label=Enlarged></dialog><script>{SCRIPT}</script></body></html>"
    )
