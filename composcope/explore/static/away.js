// What can be taken along: a sheet (PNG), the denoising (GIF), the numbers (JSON), and the lines of Python.

import { el, short } from "./dom.js";
import { gif } from "./gif.js";
import { bitmap } from "./heat.js";
import { conditions, hasRadius, picture, spoken } from "./state.js";

const SIDE = 256, GAP = 16, TITLE = 30, FOOT = 46;

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const zoom = (image) => Math.max(1, Math.floor(SIDE / image.naturalWidth));
const called = (one) => one.model + { none: "", local: ` + local conditions (${short(one.radius)})`, guided: ` + guided local conditions (${short(one.radius)})`, composed: " + composed scores" }[one.intervention];

function canvasOf(count, top, foot) {
  const canvas = el("canvas", { width: count * (SIDE + GAP) + GAP, height: GAP + top + SIDE + foot });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = false;
  return { canvas, pen };
}

// The marks over a column's picture, as the page draws them.
function marks(pen, column, left, top, side) {
  pen.save();
  pen.translate(left, top);
  pen.scale(side / 100, side / 100);
  for (const mark of column.marks.children) {
    const style = getComputedStyle(mark);
    const shape = outline(mark);
    pen.globalAlpha = Number(style.opacity);
    pen.lineWidth = parseFloat(style.strokeWidth);
    pen.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat));
    pen.fillStyle = style.fill;
    pen.strokeStyle = style.stroke;
    if (style.fill !== "none") pen.fill(shape);
    pen.stroke(shape);
  }
  pen.restore();
}

function outline(mark) {
  const at = (name) => Number(mark.getAttribute(name));
  const shape = new Path2D(mark.getAttribute("d") ?? "");
  if (mark.tagName === "circle") shape.arc(at("cx"), at("cy"), at("r"), 0, 2 * Math.PI);
  if (mark.tagName === "rect") shape.rect(at("x"), at("y"), at("width"), at("height"));
  return shape;
}

// What the columns show, side by side.
export async function sheet(columns) {
  const { canvas, pen } = canvasOf(columns.length, TITLE, FOOT);
  for (const [number, column] of columns.entries()) {
    const frame = column.frames[column.index];
    const image = await bitmap(frame.png);
    const side = zoom(image) * image.naturalWidth;
    const left = GAP + number * (SIDE + GAP) + (SIDE - side) / 2;
    const top = GAP + TITLE;
    const write = (words, font, y) => {
      pen.fillStyle = "#1c1e21";
      pen.font = `${font} system-ui, sans-serif`;
      pen.fillText(words, left, y, SIDE);
    };
    write(called(column.one), "600 15px", GAP + 12);
    pen.drawImage(image, left, top, side, side);
    if (column.seen) pen.drawImage(column.heat, left, top, side, side);
    marks(pen, column, left, top, side);
    write(column.result.verdict, "14px", top + SIDE + 20);
    write(`seed ${column.state.seed}, ${column.state.steps} steps, σ = ${short(frame.sigma)}`, "12px", top + SIDE + 38);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export async function film(columns) {
  const steps = Math.max(...columns.map((column) => column.frames.length));
  const frames = [];
  for (let step = 0; step < steps; step++) {
    const { canvas, pen } = canvasOf(columns.length, 0, GAP);
    for (const [number, column] of columns.entries()) {
      const image = await bitmap(column.frames[Math.min(step, column.frames.length - 1)].png);
      const side = zoom(image) * image.naturalWidth;
      pen.drawImage(image, GAP + number * (SIDE + GAP) + (SIDE - side) / 2, GAP, side, side);
    }
    frames.push(pen.getImageData(0, 0, canvas.width, canvas.height));
  }
  return gif(frames, frames.map((_, step) => (step === steps - 1 ? 160 : 14)));
}

export function numbers(state, columns) {
  const shown = columns.map((column) => ({
    ...picture(state, column.one, column.described),
    steps: state.steps,
    sigmas: column.frames.map((frame) => frame.sigma),
    ...(({ image, ...rest }) => rest)(column.result),
    look: column.looked && state.pixel ? withoutPictures(column.looked) : null,
  }));
  return new Blob([JSON.stringify({ address: location.href, columns: shown }, null, 1)], { type: "application/json" });
}

function withoutPictures({ image, influences, ...rest }) {
  return { ...rest, influences: influences.map(({ without, ...one }) => one) };
}

// ------------------------------------------------------------------------------------------
// Python.

const tuple = ([u, v]) => `(${u}, ${v})`;
const quoted = (text) => JSON.stringify(text);

function wrapped(one, { run, conditioner }) {
  const model = `load(${quoted(run)}${conditioner ? `, conditioner=${quoted(conditioner)}` : ""})`;
  if (one.intervention === "none") return model;
  return `intervene(${model}, ${quoted(one.intervention)}${hasRadius(one) ? `, radius=${one.radius}` : ""})`;
}

export function python(state, models) {
  const kinds = state.columns.map((one) => models.get(one.model).asks);
  const helped = state.columns.some((one) => one.intervention !== "none");
  const lines = ["from composcope import draw, load"];
  if (kinds.includes("words")) lines.push("from composcope.diffusion.sample import sample", "from composcope.features import sdxl");
  if (helped) lines.push("from composcope.locality import intervene");
  lines.push("");
  if (kinds.includes("places")) lines.push(`places = [${state.places.map(tuple).join(", ")}]`);
  if (kinds.includes("names")) {
    const model = models.get(state.columns[kinds.indexOf("names")].model);
    lines.push(`names = [${conditions(state, model).map(quoted).join(", ")}]`);
  }
  if (kinds.includes("words")) {
    const name = state.columns[kinds.indexOf("words")].model;
    lines.push(`text = sdxl.load(${quoted(name)})`, `cond = text.encode([${quoted(spoken(state))}])`);
  }
  lines.push("", "pictures = [");
  state.columns.forEach((one) => lines.push(`    ${drawn(state, one, models.get(one.model))},`));
  lines.push("]");
  return lines.join("\n") + "\n";
}

function drawn(state, one, model) {
  if (model.asks === "words") return `text.decode(sample(text, [${state.seed}], text.shape, cond, text.levels(${state.steps})))[0]`;
  const asked = { places: "[places]", names: "[names]", nothing: "[()]" }[model.asks];
  return `draw(${wrapped(one, model)}, ${asked}, seeds=[${state.seed}], steps=${state.steps})[0]`;
}
