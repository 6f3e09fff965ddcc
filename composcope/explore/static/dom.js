// Elements, made in one line each.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export function message(text, wrong = false) {
  $("message").textContent = text;
  $("message").classList.toggle("wrong", wrong);
}

// A number as one would say it: two digits that count.
export function short(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return Number(value.toPrecision(2)).toString();
}

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
