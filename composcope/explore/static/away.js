// What can be taken along: a sheet (PNG), the denoising (GIF), the numbers (JSON), and the lines of Python.

import { el } from "./dom.js";
import { gif } from "./gif.js";
import { conditions, picture, spoken } from "./state.js";

const SIDE = 256, GAP = 16, TITLE = 30, FOOT = 46;

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function bitmap(png) {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  return image;
}

const zoom = (image) => Math.max(1, Math.floor(SIDE / image.naturalWidth));
const called = (one) => one.model + { none: "", local: " + local conditions", composed: " + composed scores" }[one.intervention];

function canvasOf(count, top, foot) {
  const canvas = el("canvas", { width: count * (SIDE + GAP) + GAP, height: GAP + top + SIDE + foot });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = false;
  return { canvas, pen };
}

function circle(pen, x, y, radius, style) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  Object.assign(pen, style);
  if (style.fillStyle) pen.fill();
  if (style.strokeStyle) pen.stroke();
}

export async function sheet(columns) {
  const { canvas, pen } = canvasOf(columns.length, TITLE, FOOT);
  for (const [number, column] of columns.entries()) {
    const image = await bitmap(column.frames[column.index].png);
    const side = zoom(image) * image.naturalWidth;
    const left = GAP + number * (SIDE + GAP) + (SIDE - side) / 2;
    const top = GAP + TITLE;
    pen.fillStyle = "#1c1e21";
    pen.font = "600 15px system-ui, sans-serif";
    pen.fillText(called(column.one), left, GAP + 12, SIDE);
    pen.drawImage(image, left, top, side, side);
    for (const found of column.result.found) {
      const at = [left + side * found.x, top + side * found.y, side / 16];
      pen.setLineDash([]);
      circle(pen, ...at, { strokeStyle: "rgb(22 24 27 / 65%)", lineWidth: 4.5, fillStyle: null });
      pen.setLineDash(found.extra ? [6, 4] : []);
      circle(pen, ...at, { strokeStyle: found.extra ? "#f0e442" : "#ffffff", lineWidth: 2.2, fillStyle: null });
    }
    pen.setLineDash([]);
    if (column.described.asks === "places") {
      for (const [u, v] of column.asked) {
        circle(pen, left + side * u, top + side * v, 4.6, { fillStyle: "#d55e00", strokeStyle: "#ffffff", lineWidth: 1.4 });
      }
    }
    pen.fillStyle = "#3d4148";
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(column.result.verdict, left, top + SIDE + 22, SIDE);
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

function wrapped(one) {
  const model = `load(${quoted(one.model)})`;
  if (one.intervention === "none") return model;
  return `intervene(${model}, ${quoted(one.intervention)}${one.intervention === "local" ? `, radius=${one.radius}` : ""})`;
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
  state.columns.forEach((one, index) => lines.push(`    ${drawn(state, one, kinds[index])},`));
  lines.push("]");
  return lines.join("\n") + "\n";
}

function drawn(state, one, kind) {
  if (kind === "words") return `text.decode(sample(text, [${state.seed}], text.shape, cond, text.levels(${state.steps})))[0]`;
  const asked = { places: "[places]", names: "[names]", nothing: "[()]" }[kind];
  return `draw(${wrapped(one)}, ${asked}, seeds=[${state.seed}], steps=${state.steps})[0]`;
}
