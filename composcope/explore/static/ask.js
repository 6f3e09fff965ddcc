// Where places are clicked: the empty scene, the model's grid, and a numbered dot for each place.

import { $, clamp, el, message, svg } from "./dom.js";
import { MOST_PLACES } from "./state.js";

const NEAR = 0.035; // a click this near to a place is on it, in image sides
const MOVED = 0.012; // a pointer that moved less than this has clicked
const said = ([u, v], index) => `${index + 1} at ${u}, ${v}`;
const round = (value) => Math.round(clamp(value, 0, 1) * 1000) / 1000;

export class Ask {
  // changed(places): the user asks for others. hover(k or null): the user points at a place.
  constructor(changed, hover) {
    this.changed = changed;
    this.hover = hover;
    this.places = [];
    this.cross = [0.5, 0.5];
    this.image = el("img", { alt: "", draggable: "false" });
    this.drawing = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
    this.box = $("ground");
    this.box.append(this.image, this.drawing);
    this.box.addEventListener("pointerdown", (event) => this.down(event));
    this.box.addEventListener("pointermove", (event) => this.move(event));
    this.box.addEventListener("pointerup", (event) => this.up(event));
    this.box.addEventListener("pointercancel", () => this.release());
    this.box.addEventListener("pointerleave", () => this.hover(null));
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  show(places, model) {
    this.places = places;
    this.grid = model?.grid ?? 0;
    const source = `static/ground-${model?.view ?? "full"}.png`;
    if (this.image.getAttribute("src") !== source) this.image.src = source;
    this.paint();
  }

  highlight(number) {
    this.drawing.querySelectorAll(".place").forEach((dot, index) => dot.classList.toggle("hot", index === number));
  }

  paint() {
    const lines = [];
    for (let cell = 1; cell < this.grid; cell++) {
      const at = (100 * cell) / this.grid;
      lines.push(svg("line", { class: "grid", x1: at, x2: at, y1: 0, y2: 100 }));
      lines.push(svg("line", { class: "grid", x1: 0, x2: 100, y1: at, y2: at }));
    }
    const dots = this.places.map(([u, v], index) =>
      svg("g", { class: "place", "data-place": index },
        svg("circle", { class: "asked", cx: 100 * u, cy: 100 * v, r: 3.3 }),
        svg("text", { x: 100 * u, y: 100 * v + 0.2 }, String(index + 1))));
    const [x, y] = this.cross.map((part) => 100 * part);
    const cross = svg("path", { class: "cross", d: `M${x - 5} ${y}h10M${x} ${y - 5}v10` });
    this.drawing.replaceChildren(...lines, ...dots, cross);
    this.box.setAttribute("aria-description", this.places.length ? `Asked: ${this.places.map(said).join(", ")}.` : "Nothing is asked.");
  }

  at(event) {
    const box = this.box.getBoundingClientRect();
    return [round((event.clientX - box.left) / box.width), round((event.clientY - box.top) / box.height)];
  }

  // The number of the place under (u, v), or -1.
  under([u, v]) {
    const away = this.places.map(([a, b]) => Math.hypot(a - u, b - v));
    const nearest = away.indexOf(Math.min(...away));
    return nearest >= 0 && away[nearest] < NEAR ? nearest : -1;
  }

  down(event) {
    if (event.button) return;
    this.box.setPointerCapture(event.pointerId);
    this.start = this.at(event);
    this.held = this.under(this.start);
    this.moved = false;
  }

  move(event) {
    const at = this.at(event);
    if (!this.start) {
      const over = this.under(at);
      this.hover(over >= 0 ? over : null);
      return;
    }
    if (Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) > MOVED) this.moved = true;
    if (this.moved && this.held >= 0) {
      this.places = this.places.map((place, index) => (index === this.held ? at : place));
      this.paint();
    }
  }

  up(event) {
    if (!this.start) return;
    this.move(event); // the page may have been drawn anew since the last one
    const { held, moved } = this;
    this.release();
    if (held >= 0 && moved) this.changed(this.places);
    else if (!moved) this.toggle(this.at(event));
  }

  release() {
    this.start = null;
  }

  toggle(place) {
    const under = this.under(place);
    if (under >= 0) this.changed(this.places.filter((_, index) => index !== under));
    else if (this.places.length >= MOST_PLACES) message(`${MOST_PLACES} places are the most that can be asked for.`);
    else this.changed([...this.places, place]);
  }

  key(event) {
    const step = event.shiftKey ? 0.01 : 0.05;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in moves) {
      this.cross = this.cross.map((part, index) => round(part + moves[event.key][index]));
      this.paint();
      const over = this.under(this.cross);
      this.hover(over >= 0 ? over : null);
      message(`The cross is at ${this.cross.join(", ")}${over >= 0 ? `, on place ${over + 1}` : ""}.`);
    } else if (event.key === "Enter" || event.key === " ") this.toggle(this.cross);
    else if (event.key === "Delete" || event.key === "Backspace") {
      if (this.under(this.cross) >= 0) this.toggle(this.cross);
    } else return;
    event.preventDefault();
  }
}
