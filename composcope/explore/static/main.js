// The page: one state, drawn into the columns; every change is written into the address and cancels what is running.

import * as api from "./api.js";
import { film, numbers, python, save, sheet } from "./away.js";
import { Ask } from "./ask.js";
import { Column } from "./column.js";
import { $, clamp, el, message, short } from "./dom.js";
import { MOST_COLUMNS, MOST_PLACES, picture, pieces, RADIUS, read, written } from "./state.js";

const PAUSE = 120; // milliseconds without a change before the server is asked
const BEAT = 140; // milliseconds that a step is shown while playing
const INVITATION = "Click a pixel to see what it looks at.";
const LEGEND = "Bright: what the pixel looks at. Point at a condition to see where it acts; Escape ends looking.";
const NEAR_THE_END = " With hardly any noise left it looks at little more than itself: move the noise level back.";

let models, places, report, state;
let columns = [];
const rows = new Map(); // of each run
let drawing = null, looking = null; // what the server is at: to be cancelled
let waiting, lookWaiting, playing;

// ------------------------------------------------------------------------------------------
// From the state to the page.

const kinds = () => new Set(state.columns.map((one) => models.get(one.model).asks));
const first = (kind) => models.get(state.columns.find((one) => models.get(one.model).asks === kind)?.model);

function render() {
  const asks = kinds();
  $("ask-places").hidden = !asks.has("places");
  $("ask-names").hidden = !asks.has("names");
  $("ask-words").hidden = !asks.has("words");
  ask.show(state.places, first("places"));
  const paper = state.places.every((place, index) => String(place) === String(places.paper[index]));
  [...$("paper").children].forEach((button, K) => button.setAttribute("aria-pressed", String(paper && K === state.places.length)));
  if (asks.has("names")) renderNames(first("names"));
  if (asks.has("words")) renderWords();
  for (const name of ["seed", "steps"]) if (document.activeElement !== $(name)) $(name).value = state[name];
  renderColumns();
  renderLevel();
}

function renderNames(model) {
  const chip = (name) => {
    const count = state.names.filter((one) => one === name).length;
    const swatch = model.noun === "colour" ? el("span", { class: "swatch", "data-colour": name }) : "";
    return el("button", { class: "chip", type: "button", "aria-pressed": String(count > 0),
      onclick: () => change({ names: count ? state.names.filter((one) => one !== name) : [...state.names, name] }) }, swatch, name);
  };
  const focused = $("ask-names").contains(document.activeElement) ? document.activeElement.textContent : null;
  const all = el("button", { type: "button", onclick: () => change({ names: [...model.names].slice(0, model.most) }) }, `All ${model.names.length}`);
  const random = el("button", { type: "button", onclick: () => change({ names: shuffled(model.names).slice(0, Math.max(1, state.names.length)) }) }, "Random");
  const none = el("button", { type: "button", onclick: () => change({ names: [] }) }, "Clear");
  $("ask-names").replaceChildren(el("div", { class: "chips" }, model.names.map(chip)),
    el("div", { class: "row buttons" }, all, random, none));
  for (const swatch of document.querySelectorAll(".swatch")) swatch.style.background = swatch.dataset.colour;
  if (focused) [...$("ask-names").querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
}

function renderWords() {
  if (document.activeElement !== $("sentence")) $("sentence").value = state.sentence;
  $("words").replaceChildren(...pieces(state.sentence).map(({ text, number }) => {
    if (number === null) return el("span", {}, text);
    const off = state.off.includes(number);
    return el("button", { class: off ? "chip left-out" : "chip", type: "button", "aria-pressed": String(!off),
      onclick: () => change({ off: off ? state.off.filter((one) => one !== number) : [...state.off, number] }) }, text);
  }));
}

const shuffled = (items) => items.map((item) => [Math.random(), item]).sort((a, b) => a[0] - b[0]).map(([, item]) => item);

function renderColumns() {
  while (columns.length > state.columns.length) columns.pop().root.remove();
  while (columns.length < state.columns.length) {
    const column = new Column(models, actionsOf(() => columns.indexOf(column)));
    columns.push(column);
    $("columns").append(column.root);
  }
  columns.forEach((column, index) => {
    const one = state.columns[index];
    column.show(state, one, rows.get(one.model) ?? [], state.columns.length === 1, report);
    if (!rows.has(one.model)) fetchRows(one.model);
  });
  $("add").disabled = state.columns.length >= MOST_COLUMNS;
}

async function fetchRows(run) {
  rows.set(run, []);
  rows.set(run, await api.get(`api/rows?run=${encodeURIComponent(run)}`).catch(() => []));
  columns.filter((column) => column.one.model === run).forEach((column) => column.explain(rows.get(run), report));
}

function renderLevel() {
  const shown = columns.find((column) => column.frames.length);
  const step = shown ? shown.index : state.steps;
  const slider = $("level");
  slider.max = state.steps;
  slider.value = step;
  slider.disabled = $("play").disabled = !columns.some((column) => column.complete);
  const sigma = shown?.frames[step]?.sigma;
  const words = sigma === undefined ? "" : `σ = ${short(sigma)}`;
  $("sigma").textContent = words;
  slider.setAttribute("aria-valuetext", words);
}

// ------------------------------------------------------------------------------------------
// Changes.

function change(changes, drawn = true) {
  clearInterval(playing);
  Object.assign(state, changes);
  if (drawn) Object.assign(state, { level: null, pixel: null, without: null });
  history.replaceState(null, "", written(state));
  render();
  if (drawn) {
    document.body.dataset.state = "changed";
    stop();
    waiting = setTimeout(draw, PAUSE);
  }
}

function stop() {
  clearTimeout(waiting);
  clearTimeout(lookWaiting);
  drawing?.abort();
  looking?.abort();
}

const actionsOf = (index) => ({
  change: (field, value) => {
    const next = state.columns.map((one, at) => (at === index() ? { ...one, [field]: value } : one));
    const one = next[index()];
    if (!models.get(one.model).interventions.includes(one.intervention)) one.intervention = "none";
    change({ columns: next });
  },
  remove: () => {
    const at = index();
    columns.splice(at, 1)[0].root.remove();
    change({ columns: state.columns.filter((_, other) => other !== at) });
    columns[Math.min(at, columns.length - 1)].model.focus(); // the button that had it is gone
  },
  look: (pixel) => {
    change({ pixel, without: pixel ? state.without : null }, false);
    look();
  },
  hover: (number) => point(number, models.get(state.columns[index()].model).asks),
  without: (number) => change({ without: number === null ? null : models.get(state.columns[index()].model).asks + number }, false),
});

// A condition is pointed at in every column that is asked for the same kind.
function point(number, asks) {
  ask.highlight(asks === "places" ? number : null);
  columns.forEach((column) => column.point(column.described.asks === asks ? number : null));
}

// What the page is at, in words and for those who wait for it: drawing, drawn, looking, looked.
function doing(what, words) {
  document.body.dataset.state = what;
  message(words);
}

const busy = () => ["changed", "drawing"].includes(document.body.dataset.state);

// ------------------------------------------------------------------------------------------
// Draw: all columns whose picture is not there yet, in one request, so that those of one model share their batches.

async function draw() {
  stop();
  const wanted = columns.filter((column) => !column.complete);
  wanted.forEach((column) => column.begin());
  if (wanted.length) await drawn(wanted);
  else doing("drawn", INVITATION);
  if (columns.every((column) => column.complete) && state.pixel) look();
}

async function drawn(wanted) {
  const own = (drawing = new AbortController());
  const [one, ...beside] = wanted.map((column) => picture(state, column.one, column.described));
  doing("drawing", "Drawing …");
  render();
  try {
    await api.sample({ ...one, steps: state.steps, beside }, own.signal, (line) => {
      if (own.signal.aborted) return;
      const column = wanted[line.image];
      column.receive(line);
      column.showFrame();
      if (column.complete) column.explain(rows.get(column.one.model) ?? [], report);
      renderLevel();
    });
    doing("drawn", INVITATION);
  } catch (error) {
    failed(error);
  }
}

function failed(error) {
  if (error.name === "AbortError") return;
  document.body.dataset.state = "failed";
  message(error.message, true);
}

async function look() {
  clearTimeout(lookWaiting);
  looking?.abort();
  if (busy()) return; // looked at when all are drawn
  if (!state.pixel) {
    columns.forEach((column) => column.see(null));
    doing("drawn", INVITATION);
    return;
  }
  const own = (looking = new AbortController());
  doing("looking", "Looking …");
  try {
    await Promise.all(columns.filter((column) => column.complete).map(async (column) => {
      const asked = picture(state, column.one, column.described);
      const sigma = column.frames[column.index].sigma;
      const seen = await api.look({ ...asked, steps: state.steps, sigma, pixel: column.pixel }, own.signal);
      if (!own.signal.aborted) column.see(seen);
    }));
    if (!own.signal.aborted) doing("looked", LEGEND + (state.level === null ? NEAR_THE_END : ""));
  } catch (error) {
    failed(error);
  }
}

// ------------------------------------------------------------------------------------------
// Controls.

function level(step) {
  change({ level: step >= state.steps ? null : step }, false);
  clearTimeout(lookWaiting);
  if (!state.pixel || busy()) return;
  looking?.abort();
  doing("looking", "Looking …");
  lookWaiting = setTimeout(look, PAUSE);
}

function play() {
  clearInterval(playing);
  looking?.abort();
  let step = 0;
  const next = () => {
    if (step >= state.steps) return level(step);
    state.level = step++;
    render();
  };
  next();
  playing = setInterval(next, BEAT);
}

function otherPlaces() {
  const count = state.places.length || 3;
  const set = places.random[Math.floor(Math.random() * places.random.length)];
  change({ places: shuffled(set).slice(0, count) });
}

function bind() {
  for (let K = 0; K <= MOST_PLACES; K++) {
    $("paper").append(el("button", { type: "button", onclick: () => change({ places: places.paper.slice(0, K) }) }, String(K)));
  }
  $("random").addEventListener("click", otherPlaces);
  $("clear").addEventListener("click", () => change({ places: [] }));
  $("sentence").addEventListener("input", (event) => change({ sentence: event.target.value, off: [] }));
  $("other").addEventListener("click", () => change({ seed: Math.floor(Math.random() * 100_000) }));
  for (const [name, low, high] of [["seed", 0, 2 ** 31 - 1], ["steps", 2, 64]]) {
    $(name).addEventListener("change", (event) => {
      const said = event.target.value; // empty, if it is no number
      event.target.value = said === "" ? state[name] : clamp(Math.round(Number(said)), low, high);
      change({ [name]: Number(event.target.value) });
    });
  }
  $("level").addEventListener("input", (event) => level(Number(event.target.value)));
  $("play").addEventListener("click", play);
  $("add").addEventListener("click", () => {
    const unused = [...models.keys()].find((name) => !state.columns.some((one) => one.model === name) && models.get(name).asks === "places");
    const one = { model: unused ?? state.columns.at(-1).model, intervention: "none", radius: RADIUS };
    change({ columns: [...state.columns, one] });
    columns.at(-1).model.focus(); // what one does next; and the button may be disabled now
  });
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.pixel && !$("code").open) {
      change({ pixel: null, without: null }, false);
      look();
    }
  });
  $("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state, and no place on the page
    columns[0].picture.focus();
  });
  window.addEventListener("hashchange", () => open());
  bindAway();
}

function bindAway() {
  const take = (id, name, words, make) => $(id).addEventListener("click", async () => {
    if (!columns.every((column) => column.complete)) return message("The pictures are not there yet.");
    message(words);
    save(await make(), name);
    message(`${name} is saved.`);
  });
  const copy = async (text, words) => {
    try {
      await navigator.clipboard.writeText(text); // not there where the connection is not safe
      message(words);
    } catch {
      message("The browser does not let the page copy; select and copy by hand.", true);
    }
  };
  $("take-link").addEventListener("click", () => copy(location.href, "The link is copied."));
  $("take-python").addEventListener("click", () => {
    $("code-text").textContent = python(state, models);
    $("code").showModal();
  });
  $("code-copy").addEventListener("click", async () => {
    await copy($("code-text").textContent, "The lines are copied.");
    $("code").close(); // what is said stands behind it
  });
  take("take-png", "composcope.png", "Making the sheet …", () => sheet(columns));
  take("take-gif", "composcope.gif", "Making the film …", () => film(columns));
  take("take-json", "composcope.json", "Gathering the numbers …", () => numbers(state, columns));
}

// ------------------------------------------------------------------------------------------
// The beginning.

function open() {
  clearInterval(playing);
  state = read(location.hash, models, places.paper);
  render();
  draw();
}

const ask = new Ask((chosen) => change({ places: chosen }), (number) => point(number, "places"));

async function begin() {
  const [known, stored] = await Promise.all([api.get("api/models"), api.get("static/places.json")]);
  models = new Map(known.models.map((model) => [model.name, model]));
  report = known.report;
  places = stored;
  bind();
  open();
}

begin().catch(failed);
