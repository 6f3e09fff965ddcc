"""A recording of the explorer, for a page without a server: sliders over sprites.

    recording(drawn, looked) -> HTML     Figure 1 with a slider for K, Figure 2 for the noise level

A sprite is one picture with a tile for every position of the sliders; the page only moves it.
Everything is inside the fragment: style, script, and pictures as data URIs."""

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from composcope.errors import InputError

Images = UInt8[np.ndarray, "n h w 3"]
Places = Sequence[Sequence[float]]  # (u, v) in image sides
LARGEST = 3 * 10**6  # bytes of the fragment
QUALITIES = (90, 75, 50, 30)  # of WebP; the first that is small enough is taken
# Dark violet to pale yellow: brightness alone tells more from less, whatever colours one sees.
STOPS = np.array(
    [(40, 11, 84), (120, 28, 109), (198, 63, 79), (243, 132, 41), (250, 205, 70), (252, 255, 180)]
)


@dataclass(frozen=True)
class Drawn:
    """What a model drew: for every K as many images, what each was asked, and where objects were
    found in it."""

    name: str
    images: Mapping[int, Images]
    asked: Mapping[int, Sequence[Places]]
    found: Mapping[int, Sequence[Places]]
    there: Mapping[int, Sequence[int]]  # asked places that are filled, an image


@dataclass(frozen=True)
class Looked:
    """What a model looks at, at falling noise levels: equation 9 at a few pixels, equation 10 for
    every place."""

    name: str
    sigmas: Float[np.ndarray, " level"]
    images: UInt8[np.ndarray, "level h w 3"]  # denoised
    pixels: Sequence[tuple[int, int]]  # (row, column)
    gradients: Float[np.ndarray, "level pixel h w"]
    squares: Int[np.ndarray, "level pixel"]  # sides in pixels
    influences: Float[np.ndarray, "level pixel place"]
    places: Places


def recording(drawn: Sequence[Drawn] = (), looked: Sequence[Looked] = ()) -> str:
    """Both figures as one fragment of HTML; "" where there is nothing to show. Models share their
    sliders: they have the same K, and the same noise levels and pixels."""
    if not drawn and not looked:
        return ""
    for quality in QUALITIES:
        figures = [figure_1(drawn, quality)] if drawn else []
        figures += [figure_2(looked, quality)] if looked else []
        fragment = f"<div class=recording><style>{STYLE}</style>{''.join(figures)}</div>"
        fragment += f"<script>{SCRIPT}</script>"
        if len(fragment.encode()) <= LARGEST:
            return fragment
    raise InputError(f"recording: more than {LARGEST} bytes; give fewer images or smaller ones")


# ---------------------------------------------------------------------------------------------
# Sprites.


def sprite(tiles: Sequence[Sequence[np.ndarray]], quality: int) -> str:
    """Tiles in rows and columns as one WebP, in base64."""
    whole = np.concatenate([np.concatenate(list(row), axis=1) for row in tiles])
    out = io.BytesIO()
    Image.fromarray(whole).save(out, "WEBP", quality=quality, method=4)
    return base64.b64encode(out.getvalue()).decode()


def coloured(gradient: Float[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w 4"]:
    """A map to be laid over a picture: clear where it is nothing; its root, so that small values
    are seen."""
    share = np.sqrt(gradient / max(float(gradient.max()), 1e-30))
    at = share * (len(STOPS) - 1)
    colours = [np.interp(at, range(len(STOPS)), STOPS[:, part]) for part in range(3)]
    alpha = 255 * np.minimum(0.92, 1.3 * share)
    return np.stack([*colours, alpha], axis=-1).round().astype(np.uint8)


# ---------------------------------------------------------------------------------------------
# Figures.


def figure_1(drawn: Sequence[Drawn], quality: int) -> str:
    """A row of pictures a model; the slider is K."""
    numbers = list(drawn[0].images)
    start = numbers.index(6) if 6 in numbers else len(numbers) - 1
    data, models = [], []
    for one in drawn:
        tiles = [list(one.images[K]) for K in numbers]
        marks = [
            {
                "asked": [rounded(places) for places in one.asked[K]],
                "found": [rounded(places) for places in one.found[K]],
                "words": words(K, one.there[K]),
            }
            for K in numbers
        ]
        data.append({"count": len(tiles[0]), "rows": len(numbers), "marks": marks})
        boxes = "".join("<i><svg viewBox='0 0 100 100'></svg></i>" for _ in tiles[0])
        source = f"data:image/webp;base64,{sprite(tiles, quality)}"
        models.append(
            f"<div class=rec-model data-sprite='{source}'><b>{html.escape(one.name)}</b>"
            f"<span class=rec-tiles>{boxes}</span><span class=rec-words></span></div>"
        )
    ticks = json.dumps([f"{K} places" for K in numbers])
    return (
        "<figure class=rec data-kind=length>"
        f"{slider('How many places are asked for', len(numbers), start, ticks)}"
        f"{''.join(models)}<script type=application/json>{json.dumps(data)}</script>"
        "<figcaption>Figure 1 with a slider. Dots are places asked for, rings are objects that were "
        "found; a dot in a ring is a place filled.</figcaption></figure>"
    )


def figure_2(looked: Sequence[Looked], quality: int) -> str:
    """A picture a model; the slider is the noise level, and a pixel can be chosen by clicking."""
    first = looked[0]
    levels = len(first.sigmas)
    data, models = [], []
    for one in looked:
        pictures = sprite([list(one.images)], quality)
        maps = [[coloured(map_) for map_ in level] for level in one.gradients]
        heat = sprite(maps, quality)
        height, width = one.images.shape[1:3]
        data.append(
            {
                "size": [height, width],
                "map": list(one.gradients.shape[2:]),
                "pixels": [list(pixel) for pixel in one.pixels],
                "squares": one.squares.tolist(),
                "influences": one.influences.round(5).tolist(),
                "places": rounded(one.places),
                "levels": levels,
            }
        )
        models.append(
            f"<div class=rec-model data-sprite='data:image/webp;base64,{pictures}' "
            f"data-heat='data:image/webp;base64,{heat}'><b>{html.escape(one.name)}</b>"
            "<span class=rec-tiles><i class=rec-large><u></u>"
            "<svg viewBox='0 0 100 100'></svg></i></span>"
            "<span class=rec-words></span></div>"
        )
    ticks = json.dumps([f"noise level {sigma:.2g}" for sigma in first.sigmas])
    buttons = "".join(
        f"<button type=button data-pixel={index}>pixel {index + 1}</button>"
        for index in range(len(first.pixels))
    )
    return (
        "<figure class=rec data-kind=look>"
        f"{slider('Noise level', levels, levels // 3, ticks)}<p class=rec-pixels>{buttons}</p>"
        f"<div class=rec-side>{''.join(models)}</div>"
        f"<script type=application/json>{json.dumps(data)}</script>"
        "<figcaption>Where the score looks, with a slider. Bright is what the chosen pixel looks at "
        "(equation 9); the square holds 90 % of it. The larger a dot, the more its condition acts "
        "on that pixel (equation 10).</figcaption></figure>"
    )


def slider(words_: str, count: int, start: int, ticks: str) -> str:
    label = html.escape(words_)
    return (
        f"<p class=rec-slider><label>{label} <input type=range min=0 max={count - 1} value={start} "
        f"aria-label='{label}' data-ticks='{html.escape(ticks, quote=True)}'></label> "
        "<output></output></p>"
    )


def words(K: int, there: Sequence[int]) -> str:
    mean = float(np.mean(there)) if len(there) else 0.0
    return "nothing asked" if K == 0 else f"{mean:.1f} of {K} filled"


def rounded(places: Places) -> list[list[float]]:
    return [[round(float(part), 3) for part in place[:2]] for place in places]


STYLE = """
.rec { margin: 1.5rem 0 }
.rec-slider label { font-weight: 600 }
.rec-slider input { width: min(22rem, 60%); vertical-align: middle }
.rec-slider output { font-variant-numeric: tabular-nums }
.rec-model { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: center }
.rec-model { margin: .5rem 0 }
.rec-model b { flex: 0 0 9rem }
.rec-tiles { display: flex; flex-wrap: wrap; gap: 4px }
.rec-tiles i { position: relative; display: block; width: 128px; height: 128px }
.rec-tiles i.rec-large { width: 256px; height: 256px; cursor: pointer }
.rec-tiles u, .rec-tiles svg { position: absolute; inset: 0; width: 100%; height: 100% }
.rec-tiles i, .rec-tiles u { image-rendering: pixelated; background-repeat: no-repeat }
.rec-side { display: flex; flex-wrap: wrap; gap: 1rem }
.rec-side .rec-model { flex-direction: column; align-items: flex-start }
.rec-side b { flex: none }
.rec-pixels button { font: inherit; margin: 0 .4rem .3rem 0; padding: .2rem .6rem; cursor: pointer;
  border: 1px solid #bbb; border-radius: 6px; background: transparent; color: inherit }
.rec-pixels button[aria-pressed=true] { background: #0067a5; border-color: #0067a5; color: #fff }
@media (max-width: 480px) {
  .rec-model b { flex-basis: 100% }
  .rec-side b { flex-basis: auto }
  .rec-tiles i { width: 64px; height: 64px }
}
"""

SCRIPT = """
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const put = (svg, tag, at) => {
    const node = document.createElementNS(SVG, tag);
    for (const name in at) node.setAttribute(name, at[name]);
    svg.append(node);
  };
  const ring = (svg, tag, at, colour) => {
    const under = {stroke: "#16181b", "stroke-opacity": .6, "stroke-width": 3};
    put(svg, tag, {...at, fill: "none", ...under});
    put(svg, tag, {...at, fill: "none", stroke: colour, "stroke-width": 1.4});
  };
  const dot = (svg, [u, v], r) => {
    const looks = {fill: "#d55e00", stroke: "#fff", "stroke-width": .8};
    put(svg, "circle", {cx: 100 * u, cy: 100 * v, r, ...looks});
  };
  const tile = (box, source, column, columns, row, rows) => {
    box.style.backgroundImage = `url(${source})`;
    box.style.backgroundSize = `${100 * columns}% ${100 * rows}%`;
    const part = (at, count) => count > 1 ? 100 * at / (count - 1) : 0;
    box.style.backgroundPosition = `${part(column, columns)}% ${part(row, rows)}%`;
  };
  const length = (model, data, row) => {
    const marks = data.marks[row];
    model.querySelectorAll("i").forEach((box, column) => {
      tile(box, model.dataset.sprite, column, data.count, row, data.rows);
      const svg = box.firstChild;
      svg.replaceChildren();
      for (const [u, v] of marks.found[column]) {
        ring(svg, "circle", {cx: 100 * u, cy: 100 * v, r: 6.25}, "#fff");
      }
      for (const place of marks.asked[column]) dot(svg, place, 2.2);
    });
    model.querySelector(".rec-words").textContent = marks.words;
  };
  const look = (model, data, level, pixel) => {
    const box = model.querySelector("i"), svg = box.querySelector("svg");
    tile(box, model.dataset.sprite, level, data.levels, 0, 1);
    tile(box.querySelector("u"), model.dataset.heat, pixel, data.pixels.length, level, data.levels);
    svg.replaceChildren();
    const [high, wide] = data.map, [row, column] = data.pixels[pixel];
    const side = data.squares[level][pixel];
    const x = 100 * (column + .5) / wide, y = 100 * (row + .5) / high;
    const w = 100 * side / wide, h = 100 * side / high;
    ring(svg, "rect", {x: x - w / 2, y: y - h / 2, width: w, height: h}, "#56b4e9");
    const acts = data.influences[level][pixel], most = Math.max(...acts, 1e-12);
    data.places.forEach((place, k) => dot(svg, place, 1 + 3.5 * acts[k] / most));
    ring(svg, "path", {d: `M${x - 3} ${y}h6M${x} ${y - 3}v6`}, "#fff");
    model.querySelector(".rec-words").textContent = `looks ${side} pixels wide`;
  };
  for (const figure of document.querySelectorAll("figure.rec")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const models = [...figure.querySelectorAll(".rec-model")];
    const input = figure.querySelector("input"), ticks = JSON.parse(input.dataset.ticks);
    const buttons = [...figure.querySelectorAll("[data-pixel]")];
    let pixel = 0;
    const show = () => {
      const at = Number(input.value);
      figure.querySelector("output").textContent = ticks[at];
      input.setAttribute("aria-valuetext", ticks[at]);
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", index === pixel));
      models.forEach((model, index) => figure.dataset.kind === "length"
        ? length(model, data[index], at) : look(model, data[index], at, pixel));
    };
    input.addEventListener("input", show);
    const choose = (index) => { pixel = index; show(); };
    const nearest = ({pixels, map: [high, wide]}, u, v) => {
      const off = ([row, column]) => Math.hypot((column + .5) / wide - u, (row + .5) / high - v);
      const away = pixels.map(off);
      return away.indexOf(Math.min(...away));
    };
    buttons.forEach((button, index) => button.addEventListener("click", () => choose(index)));
    models.forEach((model, index) => {
      model.querySelector(".rec-large")?.addEventListener("click", (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const u = (event.clientX - box.left) / box.width;
        const v = (event.clientY - box.top) / box.height;
        choose(nearest(data[index], u, v));
      });
    });
    show();
  }
})();
"""
