"""Pictures of the page: figures with their words, Figure 1, sheets of images, an animation."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from composcope.report.cells import prose
from composcope.report.drawing import address, mosaic, multiple, svg
from composcope.report.marks import EXP1, EXP2, EXP2_LOCAL, EXP2L, kind, name
from composcope.report.material import FINAL, Material
from composcope.results.samples import K_SHOWN, Samples
from composcope.study.effects import Side, side_of
from composcope.study.table import BY_NAME

WIDE = 6  # inches: wider figures do not share their line
TALL = 5  # inches: higher figures stand beside two others
FIGURE_1 = (EXP1, EXP2, EXP2_LOCAL, EXP2L)
SECONDS_A_FRAME = 0.28
HOLD = 5  # times that the last frame of an animation is shown


@dataclass(frozen=True)
class Shown:
    """A figure with the words under it."""

    figure: Figure
    words: str


def those(figures: Mapping[str, Figure | None]) -> list[Shown]:
    """By the words under them, the figures that there are."""
    return [Shown(figure, words) for words, figure in figures.items() if figure is not None]


def figure_html(shown: Shown) -> str:
    """A figure of several panels has a line of its own."""
    text = prose(shown.words)
    button = f'<button class=zoom title="Enlarge">{svg(shown.figure, shown.words)}</button>'
    place = "wide" if is_wide(shown) else "tall" if shown.figure.get_figheight() > TALL else "part"
    caption = f"<figcaption>{text}</figcaption>"
    return f"<figure class={place}><div class=scroll>{button}</div>{caption}</figure>"


def is_wide(shown: Shown) -> bool:
    return bool(shown.figure.get_figwidth() > WIDE)


def gallery(shown: Sequence[Shown], none: str) -> str:
    if not shown:
        return missing(none)
    return f"<div class=figures>{''.join(map(figure_html, shown))}</div>"


def missing(what: str) -> str:
    return f"<p class=none>{html.escape(what)}</p>"


def sizes(width: int) -> str:
    """Widths of a picture as CSS: usual, on large and small screens, and enlarged there."""
    wanted = {"--usual": 128, "--big": 192, "--small": 64, "--large": 640, "--phone": 320}
    return ";".join(f"{key}:{multiple(width, value)}px" for key, value in wanted.items())


def shot(samples: Samples | None, K: int) -> str:
    """The first image asked for K conditions, a cross where one is missing, and the count."""
    numbers = samples.of(K) if samples else []
    if samples is None or not numbers:
        return '<figure class="shot blank none"><span>not drawn</span></figure>'
    i = numbers[0]
    extra = samples.extra(i)
    met = samples.record.met[i]
    places = zip(samples.record.asked[i], met, strict=True)
    lost = [place for place, there in places if not there and not isinstance(place, str)]
    alt = f"{samples.about.get('run')} asked for {K}: {sum(met)} there, {extra} extra"
    image = sharp_image(samples.images[i], sizes(samples.images.shape[2]), alt)
    count = f"{sum(met)} of {K}" + (f", +{extra}" if extra else "")
    return (
        "<figure class=shot><button class=zoom title=Enlarge><span "
        f"class=over>{image}{crossed(lost)}</span></button>"
        f"<figcaption><b>{'✓' if all(met) else '✗'}</b> {count}</figcaption></figure>"
    )


def sharp_image(picture: np.ndarray, size: str, words: str) -> str:
    """An image whose pixels stay sharp."""
    source = address(picture, "WEBP", lossless=True, method=4)
    return f'<img class=pixels style="{size}" alt="{html.escape(words)}" src="{source}">'


def crossed(places: Sequence) -> str:
    """A thin red cross at each place, over a picture."""
    at = [(100 * u - 3, 100 * v - 3) for u, v in places]
    marks = "".join(f'<path d="M{x:.1f} {y:.1f}l6 6m0-6l-6 6"/>' for x, y in at)
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" fill="none" stroke-width="1.6" '
        'aria-hidden="true">'
        f'<g stroke="#fff" stroke-width="3">{marks}</g><g stroke="#d00030">{marks}</g></svg>'
    )


def figure_1(material: Material, sides: Sequence[Side] = FIGURE_1) -> str:
    """Columns K = 1, 3, 6, 9; a row a model; every picture the first from its seed, not chosen."""
    parts = ["<span class=corner></span>", *(f"<span class=k>K = {K}</span>" for K in K_SHOWN)]
    for side in sides:
        who = html.escape(name(side))
        parts.append(f"<div class=who><b>{who}</b>{html.escape(kind(side))}</div>")
        parts += [shot(material.samples_of(side), K) for K in K_SHOWN]
    return f"<div class=one>{''.join(parts)}</div>"


def sheets(material: Material) -> str:
    """All images that are kept of every model: a row a K."""
    parts = []
    place = {run: number for number, run in enumerate(BY_NAME)}
    for samples in sorted(
        material.samples, key=lambda some: place.get(str(some.about.get("run")), 99)
    ):
        Ks = [K for K in K_SHOWN if samples.of(K)]
        if samples.about.get("snapshot") not in FINAL or not Ks:
            continue
        columns = max(len(samples.of(K)) for K in Ks)
        picture = np.concatenate([mosaic(samples.images[samples.of(K)], columns) for K in Ks])
        width = picture.shape[1]
        text = f"{drawn_by(samples)}: rows K = {', '.join(map(str, Ks))}"
        fixed = "".join(f"--{where}:{width}px;" for where in ("usual", "big", "small", "phone"))
        size = f"{fixed}--large:{multiple(width, 768)}px"
        image = f"<button class=zoom title=Enlarge>{sharp_image(picture, size, text)}</button>"
        parts.append(f"<figure>{image}<figcaption>{html.escape(text)}</figcaption></figure>")
    return f"<div class=sheets>{''.join(parts)}</div>" if parts else missing("No images are kept.")


def drawn_by(samples: Samples) -> str:
    """The name of a model, with the radius of what is done to it where it is not the usual one."""
    coordinates = ("run", "intervention", "radius")
    return name(side_of(*map(samples.about.get, coordinates)))


def walks(material: Material) -> str:
    """How one image of each model comes out of the same noise, denoised at every level."""
    parts = []
    for side in (EXP1, EXP2, EXP2_LOCAL):
        samples = material.samples_of(side)
        if samples is None or not len(samples.frames):
            continue
        frames = [*samples.frames, *[samples.frames[-1]] * HOLD]
        height, width = samples.frames.shape[1:3]
        w = multiple(width, 192)
        who = html.escape(name(side))
        K = len(samples.record.walked)
        text = f"{who}, asked for {K}: the denoised image from sigma {samples.sigmas[0]:.0f} to 0"
        css = f"--w:{w}px;--h:{w * height // width}px;--n:{len(frames)}"
        css += f";--time:{SECONDS_A_FRAME * len(frames):.1f}s"
        css += f";background-image:url({address(np.concatenate(frames, axis=1))})"
        parts.append(
            f'<figure><div class=walk role=img aria-label="{text}" style="{css}"></div>'
            f"<figcaption>{who}, K = {K}</figcaption></figure>"
        )
    if not parts:
        return missing("No denoising is kept to be shown here; composcope evaluate keeps one.")
    return (
        "<h3>Out of the noise</h3><p class=small>Each model starts from the same noise and is "
        "asked for the same places. Shown is its guess of the final image, step by step.</p>"
        f"<div class=walks>{''.join(parts)}</div>"
    )
