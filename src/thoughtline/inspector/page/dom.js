// Elements without markup. Text goes in as text nodes, so nothing that a model or a person said is
// ever parsed; there is no innerHTML anywhere in this page.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "htmlFor"]);

/** Makes an element: `h("button.quiet", { type: "button", onclick }, "Save")`. */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, props, children);
}

/** The text with what stands between backticks as code. */
export function withCode(text) {
  return text.split("`").map((part, place) => place % 2 ? h("code", {}, part) : part);
}

/** Makes an SVG element. */
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
  element.append(...childNodes(children));
  return element;
}

function childNodes(children) {
  return children.flat(Infinity).filter((child) => child || child === 0).map((child) =>
    child instanceof Node ? child : visibleText(child));
}

const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Text in which invisible and direction-changing characters are shown as their code points. */
export function visibleText(text) {
  return String(text).replace(INVISIBLE, (sign) => `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Replaces what an element holds. */
export function setChildren(element, ...children) {
  element.replaceChildren(...childNodes(children));
  return element;
}

/** An icon, hidden from screen readers. */
export function icon(name, size = 16) {
  const svg = s("svg.icon", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" });
  for (const d of [ICON_PATHS[name]].flat()) svg.append(s("path", { d }));
  return svg;
}

/** A button with an icon and no visible text; the label is for screen readers and tooltips. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button.icon-button", { type: "button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** A function that calls `work` at most once in `wait` milliseconds, the last time after the last call. */
export function throttled(wait, work) {
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

let announceTimer = 0;

/** Says something to screen readers; not for anything that changes each second. */
export function announce(text) {
  const region = document.getElementById("announcements");
  region.textContent = text;
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => (region.textContent = ""), 4000);
}

/** Puts a text into the clipboard; also where the browser has no clipboard for pages without TLS. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea.unseen", { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  announce("Copied");
}

// -- storage --------------------------------------------------------------------------------------

// A browser may refuse any storage; then a choice lasts until the page is left.

/** What was stored under a key in `localStorage` or `sessionStorage`; empty: nothing. */
export function recall(storage, key) {
  try {
    return window[storage].getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** Stores a value; an empty one is removed. */
export function remember(storage, key, value) {
  try {
    if (value) window[storage].setItem(key, value);
    else window[storage].removeItem(key);
  } catch {
    // No storage.
  }
}

// -- icons ----------------------------------------------------------------------------------------

const ICON_PATHS = { // strokes on a grid of 16
  search: ["M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z", "M10.4 10.4 13.5 13.5"],
  sessions: ["M2.5 4h11", "M2.5 8h11", "M2.5 12h7"],
  continuity: ["M2 13.5h12", "M3.5 11V8", "M6.5 11V4.5", "M9.5 11V7", "M12.5 11V3"],
  cache: ["M3 4.2c0-1 2.2-1.7 5-1.7s5 .7 5 1.7-2.2 1.7-5 1.7-5-.7-5-1.7z", "M3 4.2v7.6c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4.2", "M3 8c0 1 2.2 1.7 5 1.7S13 9 13 8"],
  requests: ["M2.5 5.5h9", "M8.5 2.5l3 3-3 3", "M13.5 10.5h-9", "M7.5 7.5l-3 3 3 3"],
  download: ["M8 2.5v7.5", "M4.8 7 8 10.2 11.2 7", "M3 13.2h10"],
  overview: ["M2.5 3.5h7", "M2.5 8h11", "M2.5 12.5h5"],
  done: "M3.5 8.5 6.5 11.5 12.5 4.5",
  chevron: "M6 4l4 4-4 4",
  back: "M10 3.5 5.5 8 10 12.5",
  close: ["M4 4l8 8", "M12 4l-8 8"],
  thought: ["M8 2.2v3", "M8 10.8v3", "M2.2 8h3", "M10.8 8h3", "M4.4 4.4l1.8 1.8", "M9.8 9.8l1.8 1.8"],
  lock: ["M4 7.2h8v6H4z", "M5.6 7.2V5a2.4 2.4 0 0 1 4.8 0v2.2"],
  returned: ["M5.5 3 2.5 6l3 3", "M2.8 6h6.4a4 4 0 0 1 0 8H6"],
  dropped: ["M3 8h10", "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11z"],
  missed: ["M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11z", "M8 5.2v3.4", "M8 10.8v.2"],
  tool: "M9.6 3.1a3.4 3.4 0 0 0-3.9 4.5L2.4 10.9l2.7 2.7 3.3-3.3a3.4 3.4 0 0 0 4.5-3.9L10.8 8.5 8 7.9 7.5 5.2z",
  branch: ["M4.5 3v10", "M4.5 9.5c0-3 7-1.5 7-4.7", "M4.5 1.8a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8z", "M11.5 2.2a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8z", "M4.5 11.6a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8z"],
  compare: ["M2.5 3h4.5v10H2.5z", "M9 3h4.5v10H9z"],
  sun: ["M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6z", "M8 1.5v1.3", "M8 13.2v1.3", "M1.5 8h1.3", "M13.2 8h1.3", "M3.4 3.4l.9.9", "M11.7 11.7l.9.9", "M3.4 12.6l.9-.9", "M11.7 4.3l.9-.9"],
  moon: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z",
  system: ["M2 3.5h12v7.5H2z", "M5.5 13.5h5"],
  help: ["M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.5", "M8 11.7v.1", "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z"],
  copy: ["M5.5 5.5h7.5V13H5.5z", "M10.5 5.5V3H3v7.5h2.5"],
  bin: ["M3 4.5h10", "M6.5 4.5V2.8h3v1.7", "M4.3 4.5l.6 8.7h6.2l.6-8.7"],
  key: ["M10.5 2.5a3 3 0 1 1 0 6 3 3 0 0 1 0-6z", "M8.4 7.6 2.5 13.5", "M4.2 11.8l1.6 1.6"],
  link: ["M6.6 9.4a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.8.8", "M9.4 6.6a2.6 2.6 0 0 0-3.7 0L3.4 8.9a2.6 2.6 0 0 0 3.7 3.7l.8-.8"],
  plug: ["M5.5 2v3", "M10.5 2v3", "M4 5h8v2.5a4 4 0 0 1-8 0z", "M8 11.5V14"],
};
