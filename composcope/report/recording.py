"""A recording of the explorer, for a page without a server: sliders over sprites.

    recording(samples, maps) -> HTML     Figure 1 with a slider for K, Figure 2 for the noise level

A sprite is one picture with a tile for every position of the sliders; the page only moves it.
Everything is inside the fragment: style, script, and pictures as data URIs."""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from composcope.errors import InputError
from composcope.report.drawing import address, asset
from composcope.results.samples import Samples

Maps = Mapping[str, np.ndarray]  # as locality keeps them
SHOWN_EACH = 2  # images for each K
LARGEST = 3 * 10**6  # bytes of the fragment
QUALITIES = (90, 75, 50, 30)  # of WebP; the first that is small enough is taken
# Dark violet to pale yellow: brightness alone tells more from less, whatever colours one sees.
STOPS = np.array(
    [(40, 11, 84), (120, 28, 109), (198, 63, 79), (243, 132, 41), (250, 205, 70), (252, 255, 180)]
)


def recording(samples: Mapping[str, Samples], maps: Mapping[str, Maps]) -> str:
    """Both figures as one fragment of HTML, by the names of models; "" where there is nothing to
    show. Models share their sliders: only those K that all were asked for are shown, and only
    models that look as the first one does, at the same noise levels and pixels."""
    Ks = [K for K in range(13) if samples and all(some.of(K) for some in samples.values())]
    placed = {name: kept for name, kept in maps.items() if len(kept["places"])}
    first = next(map(sliders, placed.values()), None)
    alike = {name: kept for name, kept in placed.items() if sliders(kept) == first}
    if not Ks and not alike:
        return ""
    for quality in QUALITIES:
        figures = [sliding_figure_1(samples, Ks, quality)] if Ks else []
        figures += [figure_2(alike, quality)] if alike else []
        shown = f"{asset('recording.css')}{''.join(figures)}"
        fragment = f"<div class=recording>{shown}</div>{asset('recording.js')}"
        if len(fragment.encode()) <= LARGEST:
            return fragment
    raise InputError(f"recording: more than {LARGEST} bytes; give fewer images or smaller ones")


def sliders(kept: Maps) -> tuple[int, list]:
    return len(kept["sigmas"]), kept["pixels"].tolist()


# Sprites.


def sprite(tiles: Sequence[Sequence[np.ndarray]], quality: int) -> str:
    """Tiles in rows and columns as one WebP, as the address of a picture."""
    whole = np.concatenate([np.concatenate(list(row), axis=1) for row in tiles])
    return address(whole, "WEBP", quality=quality, method=4)


def coloured(gradient: Float[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w 4"]:
    """A map over a picture, clear where it is nothing; its root, so that small values are seen."""
    share = np.sqrt(gradient / max(float(gradient.max()), 1e-30))
    at = share * (len(STOPS) - 1)
    colours = [np.interp(at, range(len(STOPS)), STOPS[:, part]) for part in range(3)]
    alpha = 255 * np.minimum(0.92, 1.3 * share)
    return np.stack([*colours, alpha], axis=-1).round().astype(np.uint8)


def square(gradient: Float[np.ndarray, "h w"], pixel: Sequence[int], part: float = 0.9) -> int:
    """The side of the smallest square around the pixel that holds this part of the energy."""
    energy = gradient**2
    row, column = pixel
    for reach in range(max(gradient.shape)):
        top = max(row - reach, 0)
        left = max(column - reach, 0)
        if energy[top : row + reach + 1, left : column + reach + 1].sum() >= part * energy.sum():
            return 2 * reach + 1
    return 2 * max(gradient.shape) + 1


# Figures.


def sliding_figure_1(samples: Mapping[str, Samples], Ks: Sequence[int], quality: int) -> str:
    """A row of pictures a model; the slider is K."""
    data: list[dict[str, Any]] = []
    models: list[str] = []
    for name, some in samples.items():
        chosen = {K: some.of(K)[:SHOWN_EACH] for K in Ks}
        record = some.record
        marks = [
            {
                "asked": [short_places(record.asked[i]) for i in numbers],
                "found": [short_places(record.found[i]) for i in numbers],
                "words": caption(K, [sum(record.met[i]) for i in numbers]),
            }
            for K, numbers in chosen.items()
        ]
        count = len(chosen[Ks[0]])
        data.append({"count": count, "rows": len(Ks), "marks": marks})
        boxes = "<i><svg viewBox='0 0 100 100'></svg></i>" * count
        pictures = sprite([list(some.images[numbers]) for numbers in chosen.values()], quality)
        models.append(
            f"<div class=rec-model data-sprite='{pictures}'><b>{html.escape(name)}</b>"
            f"<span class=rec-tiles>{boxes}</span><span class=rec-words></span></div>"
        )
    ticks = [f"{K} places" for K in Ks]
    start = Ks.index(6) if 6 in Ks else len(Ks) - 1
    return (
        "<figure class=rec data-kind=length>"
        f"{slider('How many places are asked for', ticks, start)}"
        f"{''.join(models)}<script type=application/json>{json.dumps(data)}</script>"
        "<figcaption>The first picture of this page with a slider. Dots are places asked for, "
        "rings are objects that were found; a dot in a ring is a place filled. Counts are means of "
        "the images shown.</figcaption></figure>"
    )


def figure_2(maps: Mapping[str, Maps], quality: int) -> str:
    """A picture a model; the slider is the noise level, and a pixel can be chosen by clicking."""
    data: list[dict[str, Any]] = []
    models: list[str] = []
    for name, kept in maps.items():
        sigmas = kept["sigmas"]
        pixels = kept["pixels"].tolist()
        gradients = kept["gradients"].astype(float)
        rows, columns = kept["pixels"].T
        influences = kept["influences"][:, :, rows, columns].transpose(0, 2, 1).astype(float)
        pictures = sprite([list(kept["pictures"])], quality)
        heat = sprite([[coloured(map_) for map_ in level] for level in gradients], quality)
        data.append(
            {
                "size": list(kept["pictures"].shape[1:3]),
                "map": list(gradients.shape[2:]),
                "pixels": pixels,
                "squares": [list(map(square, level, pixels)) for level in gradients],
                "influences": influences.round(5).tolist(),
                "places": short_places(kept["places"].tolist()),
                "levels": len(sigmas),
            }
        )
        models.append(
            f"<div class=rec-model data-sprite='{pictures}' "
            f"data-heat='{heat}'><b>{html.escape(name)}</b>"
            "<span class=rec-tiles><i class=rec-large><u></u>"
            "<svg viewBox='0 0 100 100'></svg></i></span>"
            "<span class=rec-words></span></div>"
        )
    first = next(iter(maps.values()))
    ticks = [f"noise level {sigma:.2g}" for sigma in first["sigmas"].astype(float)]
    buttons = "".join(
        f"<button type=button data-pixel={index}>pixel {index + 1}</button>"
        for index in range(len(first["pixels"]))
    )
    return (
        "<figure class=rec data-kind=look>"
        f"{slider('Noise level', ticks, len(ticks) // 3)}<p class=rec-pixels>{buttons}</p>"
        f"<div class=rec-side>{''.join(models)}</div>"
        f"<script type=application/json>{json.dumps(data)}</script>"
        "<figcaption>Where the score looks, with a slider. Bright is what the chosen pixel looks "
        "at (the paper's equation 9); the square holds 90 % of it. The larger a dot, the more its "
        "condition acts on that pixel (equation 10).</figcaption></figure>"
    )


def slider(label: str, ticks: Sequence[str], start: int) -> str:
    told = html.escape(json.dumps(ticks))
    return (
        f"<p class=rec-slider><label>{label} <input type=range min=0 max={len(ticks) - 1} "
        f"value={start} aria-label='{label}' data-ticks='{told}'></label> <output></output></p>"
    )


def caption(K: int, there: Sequence[int]) -> str:
    return "nothing asked" if K == 0 else f"{np.mean(there):.1f} of {K} filled"


def short_places(places: Sequence[Any]) -> list[list[float]]:
    return [[round(float(part), 3) for part in place] for place in places]
