// One column: a model with an intervention, its picture as it comes out of the noise, and what is to be said of it.

import { clamp, el, short, svg } from "./dom.js";
import { clear, difference, paint, put } from "./heat.js";
import { conditions, hasRadius, picture } from "./state.js";
import { plain, strip } from "./strip.js";

const RING = 6.25; // of a found object, in hundredths of the picture
const AROUND = 2 * Math.PI * 12;
const INTERVENTIONS = { none: "as it was trained", local: "local conditions", guided: "guided local conditions", composed: "composed scores" };

// The section of the report that speaks of such a column.
function section(model, one) {
  if (model.asks === "words") return "elsewhere";
  return one.intervention === "none" ? "compose" : "forced";
}

export class Column {
  // actions: change(field, value), remove(), look([u, v] or null), hover(k or null), without(k or null)
  constructor(models, actions) {
    this.models = models;
    this.actions = actions;
    this.frames = []; // of every step: {sigma, png}
    this.result = null; // what was found
    this.looked = null; // what the pixel looks at
    this.key = null; // of the picture that is shown
    this.build();
  }

  build() {
    const { change, remove } = this.actions;
    const names = [...this.models.keys()].map((name) => el("option", { value: name }, name));
    this.model = el("select", { class: "model", "aria-label": "Model", onchange: (e) => change("model", e.target.value) }, names);
    this.close = el("button", { class: "close", type: "button", "aria-label": "Remove this column", onclick: remove }, "×");
    this.help = el("select", { class: "wide help", "aria-label": "Intervention", onchange: (e) => change("intervention", e.target.value) });
    this.radius = el("input", { type: "range", min: "0.05", max: "0.5", step: "0.0125", "aria-label": "Radius of local conditions",
      oninput: (e) => { this.radiusOut.textContent = short(Number(e.target.value)); },
      onchange: (e) => change("radius", Number(e.target.value)) });
    this.radiusOut = el("output");
    this.radiusRow = el("div", { class: "radius" }, "radius", this.radius, this.radiusOut);
    this.image = el("img", { alt: "", draggable: "false" });
    this.heat = el("canvas");
    this.marks = svg("svg", { class: "marks", viewBox: "0 0 100 100", "aria-hidden": "true" });
    this.done = svg("circle", { class: "done", cx: 15, cy: 15, r: 12, "stroke-dasharray": AROUND });
    this.progress = svg("svg", { class: "progress", viewBox: "0 0 30 30", role: "progressbar", "aria-label": "Denoising", "aria-valuemin": 0 },
      svg("circle", { class: "track", cx: 15, cy: 15, r: 12 }), this.done);
    this.picture = el("div", { class: "picture", tabindex: 0, role: "application",
      onclick: (event) => this.click(event), onkeydown: (event) => this.type(event) },
      this.image, this.heat, this.marks, this.progress);
    this.sign = el("span", { class: "sign", "aria-hidden": "true" });
    this.said = el("span");
    this.verdict = el("p", { class: "verdict" }, this.sign, this.said);
    this.lookBox = el("div", { class: "look", hidden: true });
    this.stripBox = el("div");
    this.words = el("p", { class: "words" });
    this.frame = el("div", { class: "frame" }, this.picture);
    this.root = el("article", { class: "card" },
      el("div", { class: "head" }, this.model, this.close, this.help), this.radiusRow,
      this.frame, this.verdict, this.lookBox, this.stripBox, this.words);
    new ResizeObserver(() => this.fit()).observe(this.frame);
    this.image.addEventListener("load", () => this.fit());
  }

  // A whole multiple of the picture's own pixels, as large as there is room.
  fit() {
    const own = this.image.naturalWidth || 32;
    const room = this.frame.clientWidth;
    const side = own * Math.max(1, Math.floor(Math.min(room, 384) / own));
    this.picture.style.width = `${side}px`;
    this.picture.style.height = `${side}px`;
  }

  get described() {
    return this.models.get(this.one.model);
  }

  get asked() {
    return conditions(this.state, this.described);
  }

  show(state, one, rows, alone, report) {
    this.state = state;
    this.one = one;
    this.model.value = one.model;
    const helps = this.described.interventions;
    this.help.replaceChildren(...helps.map((name) => el("option", { value: name }, INTERVENTIONS[name])));
    this.help.value = one.intervention;
    this.root.setAttribute("aria-label", `${one.model}, ${INTERVENTIONS[one.intervention]}`);
    this.help.disabled = helps.length === 1;
    this.radiusRow.toggleAttribute("data-off", !hasRadius(one));
    this.radius.value = one.radius;
    this.radiusOut.textContent = short(one.radius);
    this.close.disabled = alone;
    const key = JSON.stringify([picture(state, one, this.described), state.steps]);
    if (key !== this.key) this.begin();
    this.key = key;
    this.explain(rows, report);
    this.showFrame();
    this.press();
  }

  explain(rows, report) {
    const model = this.described;
    const K = this.asked.length;
    this.stripBox.hidden = model.asks !== "places" && model.asks !== "names";
    this.stripBox.replaceChildren(strip(rows, this.one, model, K, this.result?.there));
    const link = report
      ? el("a", { href: `report#${section(model, this.one)}`, target: "_blank", rel: "noopener" }, "Read more in the report")
      : "";
    this.words.replaceChildren(plain(model, this.one, this.result, K) + " ", link);
  }

  // ----------------------------------------------------------------------------------------
  // Watch.

  // What is shown from here on is another picture.
  begin() {
    this.frames = [];
    this.result = null;
    this.looked = null;
    this.advance();
  }

  receive(line) {
    if (line.png) this.frames[line.step] = { sigma: line.sigma, png: line.png };
    else this.result = line;
    this.advance();
  }

  get complete() {
    return this.result !== null;
  }

  advance() {
    const steps = this.state?.steps ?? 1;
    const share = this.frames.length / (steps + 1);
    this.progress.toggleAttribute("hidden", this.complete);
    this.progress.style.visibility = this.complete ? "hidden" : "visible";
    this.progress.setAttribute("aria-valuemax", steps + 1);
    this.progress.setAttribute("aria-valuenow", this.frames.length);
    this.done.setAttribute("stroke-dashoffset", AROUND * (1 - share));
  }

  // The step that is shown: the chosen one, or the last that is there.
  get index() {
    const last = this.frames.length - 1;
    return this.complete && this.state.level !== null ? Math.min(this.state.level, last) : last;
  }

  showFrame() {
    const frame = this.frames[this.index];
    if (frame) {
      const source = `data:image/png;base64,${frame.png}`;
      if (this.image.getAttribute("src") !== source) this.image.setAttribute("src", source);
    }
    const words = this.result?.verdict ?? (frame ? `step ${this.index} of ${this.state.steps}` : "waiting");
    this.said.textContent = words;
    const judged = this.result && this.result.there !== undefined;
    const good = judged && this.result.there === this.result.asked && this.result.extra === 0;
    this.sign.textContent = judged ? (good ? "✓" : "✗") : "";
    this.verdict.className = `verdict ${judged ? (good ? "good" : "bad") : ""}`;
    this.image.alt = `Drawn by ${this.one.model}: ${words}`;
    this.picture.setAttribute("aria-label",
      `Picture by ${this.one.model}, ${words}. Enter looks at a pixel, arrow keys move it, Escape ends.`);
    this.mark();
    this.overlay();
  }

  // Dots where something was asked, rings where something was found.
  mark() {
    const parts = [];
    if (this.complete && this.state.pixel === null && this.state.level === null) {
      for (const found of this.result.found) {
        const at = { cx: 100 * found.x, cy: 100 * found.y, r: RING };
        parts.push(svg("circle", { class: "ring-under", ...at }), svg("circle", { class: found.extra ? "ring extra" : "ring", ...at }));
      }
    }
    if (this.described.asks === "places") {
      this.asked.forEach(([u, v], index) => parts.push(
        svg("circle", { class: index === this.hot ? "asked hot" : "asked", cx: 100 * u, cy: 100 * v, r: 1.9 })));
    }
    const { seen } = this;
    if (seen) {
      const [high, wide] = [seen.gradient.length, seen.gradient[0].length];
      const [row, column] = seen.pixel;
      const middle = [(100 * (column + 0.5)) / wide, (100 * (row + 0.5)) / high];
      const [w, h] = [(100 * seen.square) / wide, (100 * seen.square) / high];
      if (this.hot === null && this.off === null) {
        const box = { x: middle[0] - w / 2, y: middle[1] - h / 2, width: w, height: h };
        parts.push(svg("rect", { class: "square-under", ...box }), svg("rect", { class: "square", ...box }));
      }
      const [x, y] = middle;
      parts.push(svg("path", { class: "square-under", d: `M${x - 3.4} ${y}h6.8M${x} ${y - 3.4}v6.8` }),
        svg("path", { class: "target", d: `M${x - 3} ${y}h6M${x} ${y - 3}v6` }));
    }
    this.marks.replaceChildren(...parts);
  }

  // ----------------------------------------------------------------------------------------
  // Look.

  hot = null; // the condition that is pointed at

  get pixel() {
    const [high, wide] = this.described.size;
    const [u, v] = this.state.pixel;
    return [clamp(Math.floor(v * high), 0, high - 1), clamp(Math.floor(u * wide), 0, wide - 1)];
  }

  click(event) {
    const box = this.picture.getBoundingClientRect();
    this.actions.look(this.cell((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height));
  }

  // The middle of the pixel at (u, v), so that a link says the same pixel.
  cell(u, v) {
    const [high, wide] = this.described.size;
    const middle = (at, side) => (clamp(Math.floor(at * side), 0, side - 1) + 0.5) / side;
    return [middle(u, wide), middle(v, high)].map((part) => Math.round(1e4 * part) / 1e4);
  }

  type(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const [high, wide] = this.described.size;
    const [u, v] = this.state.pixel ?? [0.5, 0.5];
    if (event.key === "Enter" || event.key === " ") this.actions.look(this.cell(u, v));
    else if (event.key === "Escape") this.actions.look(null);
    else if (event.key in moves && this.state.pixel) {
      const [right, down] = moves[event.key];
      this.actions.look(this.cell(u + right / wide, v + down / high));
    } else return;
    event.preventDefault();
  }

  point(number) {
    if (number === this.hot) return;
    this.hot = number;
    this.mark();
    this.overlay();
    this.lookBox.querySelectorAll("li").forEach((bar, index) => bar.classList.toggle("hot", index === number));
  }

  // What the pixel looks at, if it was asked at the noise level that is shown; at the end, at the last that has noise.
  get seen() {
    const step = Math.min(this.index, this.state.steps - 1);
    return this.state.pixel && this.looked?.step === step ? this.looked : null;
  }

  // The number of the condition that is switched off, or null.
  get off() {
    const kind = this.described.asks;
    return this.state.without?.startsWith(kind) ? Number(this.state.without.slice(kind.length)) : null;
  }

  overlay() {
    const looked = this.seen;
    const off = looked?.influences[this.off];
    const pointed = this.hot === this.off ? null : looked?.influences[this.hot];
    const turn = (this.turn = {});
    const say = (what) => { this.picture.dataset.over = what; };
    if (!looked) {
      clear(this.heat);
      say("");
    } else if (pointed) {
      paint(this.heat, pointed.map);
      say("influence");
    } else if (off) {
      difference(looked.image, off.without).then((data) => {
        if (turn !== this.turn) return; // something else is shown by now
        put(this.heat, data);
        say("difference");
      });
    } else {
      paint(this.heat, looked.gradient);
      say("gradient");
    }
  }

  see(looked) {
    this.looked = looked;
    this.hot = null; // the bars are made anew
    this.mark();
    this.overlay();
    this.tell();
  }

  // The words on a pixel come and go, and the condition that is switched off is marked.
  press() {
    const over = !(this.state.pixel && this.looked);
    if (over && this.lookBox.contains(document.activeElement)) this.picture.focus({ preventScroll: true });
    this.lookBox.hidden = over;
    this.lookBox.querySelectorAll(".off").forEach((button, index) => button.setAttribute("aria-pressed", String(index === this.off)));
  }

  // Bars for the influence of each condition on the pixel, and the column's conditional locality.
  tell() {
    this.press();
    const { looked } = this;
    if (this.lookBox.hidden) return;
    const most = Math.max(...looked.influences.map((one) => one.here), 1e-12);
    const bars = looked.influences.map((one, index) => this.bar(one, index, one.here / most));
    const share = looked.locality === null ? [] : [this.share(looked.locality, looked.chance)];
    const wide = looked.square === 1 ? "1 pixel" : `${looked.square} pixels`;
    const square = `It looks ${wide} wide: 90 % of its gradient is in that square, at σ = ${short(looked.sigma)}.`;
    this.lookBox.replaceChildren(
      el("div", { class: "top" }, el("h3", {}, `Pixel (row ${looked.pixel[0]}, column ${looked.pixel[1]})`),
        el("button", { class: "end", type: "button", onclick: () => this.actions.look(null) }, "Done")),
      el("p", {}, square),
      bars.length ? el("h3", {}, "Influence of each condition on it") : "",
      el("ul", { class: this.described.asks === "places" ? "bars" : "bars named" }, bars), ...share);
  }

  bar(one, index, share) {
    const { hover, without } = this.actions;
    const place = Array.isArray(one.condition);
    const title = `Show where condition ${index + 1} (${place ? one.condition.join(", ") : one.condition}) acts`;
    const name = place ? String(index + 1) : one.condition;
    const point = () => hover(index);
    const leave = () => hover(null);
    return el("li", { onpointerenter: point, onpointerleave: leave, onfocusin: point, onfocusout: leave },
      el("button", { class: "name", type: "button", title, "aria-label": title, onclick: point }, name), // not all browsers focus it
      svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `influence ${short(one.here)}` },
        svg("rect", { class: "track", width: 100, height: 10, rx: 1 }), svg("rect", { class: "fill", width: 100 * share, height: 10, rx: 1 })),
      el("span", { class: "value" }, short(one.here)),
      el("button", { class: "off", type: "button", "aria-pressed": String(index === this.off), title: "Show the difference that it makes",
        "aria-label": `Switch condition ${index + 1} off`, onclick: () => without(index === this.off ? null : index) }, "off"));
  }

  share(value, chance) {
    return el("div", { class: "share" },
      el("span", {}, el("b", {}, `Conditional locality ${value.toFixed(2)}`), ` (chance ${chance.toFixed(2)})`),
      svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": `conditional locality ${value.toFixed(2)}, chance ${chance.toFixed(2)}` },
        svg("rect", { class: "track", width: 100, height: 8 }), svg("rect", { class: "fill", width: 100 * value, height: 8 }),
        svg("line", { class: "chance", x1: 100 * chance, x2: 100 * chance, y1: 0, y2: 8, "vector-effect": "non-scaling-stroke" })));
  }
}
