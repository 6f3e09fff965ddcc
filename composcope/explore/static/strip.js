// How far a model composes: places filled against K from its rows, the paper's K_max, and where we stand.

import { clamp, svg } from "./dom.js";
import { hasRadius } from "./state.js";

const WIDE = 260, HIGH = 130, LEFT = 26, RIGHT = 10, TOP = 20, BOTTOM = 32, MOST = 12;
const x = (K) => LEFT + ((WIDE - LEFT - RIGHT) * K) / MOST;
const y = (count) => HIGH - BOTTOM - ((HIGH - TOP - BOTTOM) * count) / MOST;
const text = (words, at) => svg("text", at, words);

// The rows of the curve: found at each K, of the model as it is shown, the paper's places before random ones.
export function curve(rows, column) {
  const wanted = column.intervention === "none" ? undefined : column.intervention;
  const own = rows.filter((row) => row.what === "length/found" && (row.snapshot ?? "final") === "final"
    && row.intervention === wanted && (!hasRadius(column) || Math.abs(row.radius - column.radius) < 1e-3) && row.K !== undefined && row.value !== undefined);
  const best = new Map();
  for (const row of own) {
    const before = best.get(row.K);
    const better = !before || (row.asked === "paper" && before.asked !== "paper") || (row.date ?? "") > (before.date ?? "");
    if (better && !(before?.asked === "paper" && row.asked !== "paper")) best.set(row.K, row);
  }
  return [...best.values()].sort((a, b) => a.K - b.K);
}

export function strip(rows, column, model, K, there) {
  const points = curve(rows, column);
  const asked = `${model.asks === "places" ? "place" : model.noun}s asked`;
  const words = points.length
    ? `Filled against ${asked}, measured for K = ${points[0].K} to ${points.at(-1).K}`
    : `Filled against ${asked}; not measured yet`;
  const drawing = svg("svg", { class: "strip", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": words });
  drawing.append(
    svg("line", { class: "axis", x1: x(0), x2: x(MOST), y1: y(0), y2: y(0) }),
    svg("line", { class: "axis", x1: x(0), x2: x(0), y1: y(0), y2: y(MOST) }),
    svg("line", { class: "ideal", x1: x(0), x2: x(MOST), y1: y(0), y2: y(MOST) }),
    text(`${asked}, K`, { x: x(MOST), y: HIGH - 4, "text-anchor": "end" }),
    text("filled", { x: 2, y: 9 }),
  );
  for (const tick of [0, 3, 6, 9, 12]) {
    drawing.append(text(String(tick), { x: x(tick), y: y(0) + 13, "text-anchor": "middle" }));
    if (tick) drawing.append(text(String(tick), { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }));
  }
  const path = (value) => points.map((row) => `${x(row.K)},${y(value(row))}`);
  if (points.length && points.every((row) => row.low !== undefined)) {
    const band = [...path((row) => row.low), ...path((row) => row.high).reverse()];
    drawing.append(svg("polygon", { class: "band", points: band.join(" ") }));
  }
  if (points.length) drawing.append(svg("polyline", { class: "curve", points: path((row) => row.value).join(" ") }));
  else drawing.append(text("not measured yet", { x: x(6), y: y(9), "text-anchor": "middle" }));
  if (model.paper !== null && column.intervention === "none") {
    drawing.append(
      svg("path", { class: "paper", d: `M${x(model.paper)} ${y(0)}l-5 -8h10z` }),
      text(`▼ the paper’s K_max: ${model.paper}`, { x: 2, y: HIGH - 4 }));
  }
  drawing.append(svg("line", { class: "now", x1: x(K), x2: x(K), y1: y(0), y2: y(MOST) - 2 }));
  if (there !== undefined) drawing.append(svg("circle", { class: "here", cx: x(K), cy: y(there), r: 4.5 }));
  const within = clamp(x(K), 52, WIDE - 24); // beside "filled", and not over the edge
  drawing.append(text(`K = ${K}`, { x: within, y: y(MOST) - 5, "text-anchor": "middle" }));
  return drawing;
}

// ------------------------------------------------------------------------------------------
// The same in a line of plain words.

const HELP = {
  none: "",
  local: " Here each pixel is denoised with only the nearest condition, if it is within the radius.",
  guided: " Here each pixel is denoised with only the nearest condition, if it is within the radius, and what that changes counts twice.",
  composed: " Here it is asked for one condition at a time, and the scores are added.",
};

function outcome(model, result, K) {
  if (!result || result.there === undefined || !K || model.trained === null) return "";
  const beyond = K > model.trained;
  const missing = K - result.there;
  const exact = missing === 0 && result.extra === 0;
  const start = beyond ? ` ${K} is more than it ever saw` : ` ${K} is within what it saw`;
  const fate = exact ? "and it draws exactly what was asked"
    : missing === 0 ? `and nothing is missing, but ${result.extra} more ${result.extra === 1 ? "is" : "are"} there`
    : `and ${missing} of ${K} ${missing === 1 ? "is" : "are"} missing`;
  const why = beyond && exact ? ": it composes." : beyond && missing ? ": it does not compose this far." : ".";
  return `${start}, ${fate}${why}`;
}

export const plain = (model, column, result, K) => model.training + HELP[column.intervention] + outcome(model, result, K);
