// How a session or a turn stands, as a dot with a word.
import { STATUSES, statusWords } from "./codes.js";
import { h } from "./dom.js";

const shade = (name) => (name in STATUSES ? name : "other");

export function status(name) {
  return h(`span.status.${shade(name)}`, {}, h("i", { "aria-hidden": "true" }), statusWords(name));
}

export function dot(name) {
  return h(`span.status-dot.${shade(name)}`, { title: statusWords(name) }, h("span.unseen", {}, statusWords(name)));
}
