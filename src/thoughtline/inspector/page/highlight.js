// What was searched for, marked wherever text is shown.
import { h, visibleText } from "./dom.js";

let wanted = null;

/** Marks this from now on; empty: nothing. */
export function setHighlight(text) {
  wanted = text ? new RegExp(`(${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "gi") : null;
}

/** A text as nodes, with what was searched for in `mark` elements. */
export function marked(text) {
  if (!wanted) return [visibleText(text)];
  return text.split(wanted).map((piece, index) => (index % 2 ? h("mark", {}, piece) : visibleText(piece))).filter((piece) => piece !== "");
}
