// All that the page shows follows from one object, and the object is in the address: a copied link is the same page.

import { clamp } from "./dom.js";

export const MOST_PLACES = 12;
export const MOST_COLUMNS = 4;
export const RADIUS = 0.1875; // of local conditions, in image sides
export const hasRadius = (one) => ["local", "guided"].includes(one.intervention);

const LARGEST_SEED = 2 ** 31 - 1;
const FIRST = [["exp1", "none"], ["exp2", "none"], ["exp2", "local"]];

export function initial(models, paper) {
  const known = FIRST.filter(([name, how]) => models.get(name)?.interventions.includes(how));
  const chosen = known.length ? known : [[models.keys().next().value, "none"]];
  const worded = [...models.values()].find((model) => model.asks === "words");
  return {
    places: paper.slice(0, 9),
    names: ["red", "blue", "yellow"],
    sentence: worded ? worded.like : "",
    off: [], // words of the sentence that are left out, by their number
    columns: chosen.map(([model, intervention]) => ({ model, intervention, radius: RADIUS })),
    seed: 0,
    steps: 12,
    level: null, // the step that is shown; null: the last
    pixel: null, // [u, v] that is looked at
    without: null, // the condition that is switched off while looking: its kind and number, "places0"
  };
}

const number = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : null);
const whole = (text, low, high) => (number(text) === null ? null : clamp(Math.round(number(text)), low, high));
const pair = (text) => {
  const parts = text.split(",").map(number);
  return parts.length === 2 && parts.every((part) => part !== null && part >= 0 && part <= 1) ? parts : null;
};
const list = (text, separator) => (text ? text.split(separator) : []);
const coded = encodeURIComponent; // a name may hold what parts a list
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
};

function column(text, models) {
  const [name, intervention = "none", radius = ""] = text.split(",");
  const model = decoded(name);
  const known = models.get(model);
  if (!known || !known.interventions.includes(intervention)) return null;
  return { model, intervention, radius: clamp(number(radius) ?? RADIUS, 0.01, 1) };
}

// The state that an address speaks of; what it does not say, or says wrongly, stays as it is at the start.
export function read(hash, models, paper) {
  const state = initial(models, paper);
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const take = (name, make) => {
    const value = said.has(name) ? make(said.get(name)) : null;
    if (value !== null) state[name] = value;
  };
  const columns = list(said.get("columns"), ";").map((text) => column(text, models)).filter(Boolean);
  if (columns.length) state.columns = columns.slice(0, MOST_COLUMNS);
  take("places", (text) => list(text, ";").map(pair).filter(Boolean).slice(0, MOST_PLACES));
  take("names", (text) => list(text, ",").map(decoded).slice(0, MOST_PLACES));
  take("sentence", (text) => text.slice(0, 200));
  take("off", (text) => list(text, ",").map((part) => whole(part, 0, 99)).filter((part) => part !== null));
  take("seed", (text) => whole(text, 0, LARGEST_SEED));
  take("steps", (text) => whole(text, 2, 64));
  take("level", (text) => whole(text, 0, state.steps));
  take("pixel", pair);
  take("without", (text) => (/^(places|names|words)\d{1,2}$/.test(text) ? text : null));
  return state;
}

export function written(state) {
  const said = new URLSearchParams();
  const shape = (one) => [coded(one.model), one.intervention, ...(hasRadius(one) ? [one.radius] : [])].join(",");
  said.set("columns", state.columns.map(shape).join(";"));
  said.set("places", state.places.map((place) => place.join(",")).join(";"));
  said.set("names", state.names.map(coded).join(","));
  said.set("sentence", state.sentence);
  if (state.off.length) said.set("off", state.off.join(","));
  said.set("seed", state.seed);
  said.set("steps", state.steps);
  for (const name of ["level", "pixel", "without"]) {
    if (state[name] !== null) said.set(name, state[name]);
  }
  return "#" + said.toString().replaceAll("%2C", ",").replaceAll("%3B", ";");
}

// ------------------------------------------------------------------------------------------
// What is asked of a column.

const STOP = new Set("a an and are as at by for from in is it its of on or that the this to was with".split(" "));

// The sentence in pieces: words that can be left out have a number, all else has none.
export function pieces(sentence) {
  let number = 0;
  return [...sentence.matchAll(/[\p{L}\p{N}_]+(?:[-'’][\p{L}\p{N}_]+)*|[^\p{L}\p{N}_\s]+/gu)].map((match) => {
    const [text] = match;
    const counts = /^[\p{L}\p{N}_]/u.test(text) && !STOP.has(text.toLowerCase());
    return { text, start: match.index, number: counts ? number++ : null };
  });
}

// The sentence with the words cut out that are left out, and the spaces they leave closed.
export function spoken(state) {
  const out = pieces(state.sentence).filter((piece) => state.off.includes(piece.number)).reverse();
  const kept = out.reduce((said, { start, text }) => said.slice(0, start) + said.slice(start + text.length), state.sentence);
  return kept.replace(/\s+/g, " ").replace(/\s+(?=[,.;:!?]|$)/g, "").trim();
}

export function conditions(state, model) {
  if (model.asks === "places") return state.places.slice(0, model.most);
  if (model.asks === "names") return state.names.filter((name) => model.names.includes(name)).slice(0, model.most);
  if (model.asks === "words") return pieces(spoken(state)).filter((p) => p.number !== null).map((p) => p.text);
  return [];
}

// The picture of a column, as the server is asked for it.
export function picture(state, one, model) {
  const asked = { model: one.model, intervention: one.intervention, seed: state.seed };
  if (model.asks === "words") asked.sentence = spoken(state);
  else asked.conditions = conditions(state, model);
  if (hasRadius(one)) asked.radius = one.radius;
  return asked;
}
