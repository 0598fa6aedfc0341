// Elements without markup. Text goes in as text nodes, so nothing that a model or a person said is
// ever parsed; there is no innerHTML anywhere in this page.
import { PATHS } from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "htmlFor"]);

/** `h("button.quiet", { type: "button", onclick }, "Save")`. */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, props, children);
}

/** The same for drawings. */
export function s(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key)) element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...given(children));
  return element;
}

function given(children) {
  return children.flat(Infinity).filter((child) => child || child === 0).map((child) =>
    child instanceof Node ? child : plain(child));
}

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Text in which everything can be seen: what hides, or turns the words around it, says its name. */
export function plain(text) {
  return String(text).replace(HIDDEN, (sign) => `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Put these in place of whatever an element holds. */
export function put(element, ...children) {
  element.replaceChildren(...given(children));
  return element;
}

/** A small drawing, invisible to screen readers. */
export function icon(name, size = 16) {
  const drawn = s("svg.icon", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" });
  for (const d of [PATHS[name]].flat()) drawn.append(s("path", { d }));
  return drawn;
}

/** A button with a drawing and nothing else to see; the label is for screen readers and tooltips. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button.icon-button", { type: "button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** Call at most once in a while, the last time after things have calmed down. */
export function calmly(wait, work) {
  let timer = 0;
  const call = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      work();
    }, wait);
  };
  call.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return call;
}

let said = 0;

/** Tell those who cannot see; not for anything that changes each second. */
export function announce(text) {
  const region = document.getElementById("said");
  region.textContent = text;
  clearTimeout(said);
  said = setTimeout(() => (region.textContent = ""), 4000);
}
