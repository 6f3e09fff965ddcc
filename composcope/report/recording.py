"""A recording of the explorer, for a page without a server: sliders over sprites.

    recording(samples, maps) -> HTML     Figure 1 with a slider for K, Figure 2 for the noise level

A sprite is one picture with a tile for every position of the sliders; the page only moves it.
Everything is inside the fragment: style, script, and pictures as data URIs."""

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from composcope.errors import InputError
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
        figures = [figure_1(samples, Ks, quality)] if Ks else []
        figures += [figure_2(alike, quality)] if alike else []
        fragment = f"<div class=recording><style>{STYLE}</style>{''.join(figures)}</div>"
        fragment += f"<script>{SCRIPT}</script>"
        if len(fragment.encode()) <= LARGEST:
            return fragment
    raise InputError(f"recording: more than {LARGEST} bytes; give fewer images or smaller ones")


def sliders(kept: Maps) -> tuple[int, list]:
    return len(kept["sigmas"]), kept["pixels"].tolist()


# ---------------------------------------------------------------------------------------------
# Sprites.


def sprite(tiles: Sequence[Sequence[np.ndarray]], quality: int) -> str:
    """Tiles in rows and columns as one WebP, as the address of a picture."""
    whole = np.concatenate([np.concatenate(list(row), axis=1) for row in tiles])
    out = io.BytesIO()
    Image.fromarray(whole).save(out, "WEBP", quality=quality, method=4)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"


def coloured(gradient: Float[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w 4"]:
    """A map to be laid over a picture: clear where it is nothing; its root, so that small values
    are seen."""
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
        top, left = max(row - reach, 0), max(column - reach, 0)
        if energy[top : row + reach + 1, left : column + reach + 1].sum() >= part * energy.sum():
            return 2 * reach + 1
    return 2 * max(gradient.shape) + 1


# ---------------------------------------------------------------------------------------------
# Figures.


def figure_1(samples: Mapping[str, Samples], Ks: Sequence[int], quality: int) -> str:
    """A row of pictures a model; the slider is K."""
    data, models = [], []
    for name, some in samples.items():
        chosen = {K: some.of(K)[:SHOWN_EACH] for K in Ks}
        record = some.record
        marks = [
            {
                "asked": [rounded(record.asked[i]) for i in numbers],
                "found": [rounded(record.found[i]) for i in numbers],
                "words": words(K, [sum(record.met[i]) for i in numbers]),
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
        "<figcaption>Figure 1 with a slider. Dots are places asked for, rings are objects that were "
        "found; a dot in a ring is a place filled.</figcaption></figure>"
    )


def figure_2(maps: Mapping[str, Maps], quality: int) -> str:
    """A picture a model; the slider is the noise level, and a pixel can be chosen by clicking."""
    data, models = [], []
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
                "places": rounded(kept["places"].tolist()),
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
        "<figcaption>Where the score looks, with a slider. Bright is what the chosen pixel looks at "
        "(the paper's equation 9); the square holds 90 % of it. The larger a dot, the more its "
        "condition acts on that pixel (equation 10).</figcaption></figure>"
    )


def slider(label: str, ticks: Sequence[str], start: int) -> str:
    told = html.escape(json.dumps(ticks))
    return (
        f"<p class=rec-slider><label>{label} <input type=range min=0 max={len(ticks) - 1} "
        f"value={start} aria-label='{label}' data-ticks='{told}'></label> <output></output></p>"
    )


def words(K: int, there: Sequence[int]) -> str:
    return "nothing asked" if K == 0 else f"{np.mean(there):.1f} of {K} filled"


def rounded(places: Sequence[Any]) -> list[list[float]]:
    return [[round(float(part), 3) for part in place] for place in places]


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
