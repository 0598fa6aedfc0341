// How a session or a turn stands, as a dot with a word.
import { h } from "./dom.js";

export const STATUSES = ["running", "completed", "failed", "capped", "aborted"];

export function status(name) {
  return h(`span.status.${STATUSES.includes(name) ? name : "other"}`, {}, h("i", { "aria-hidden": "true" }), name || "new");
}

export function dot(name) {
  return h(`span.status-dot.${STATUSES.includes(name) ? name : "other"}`, { title: name || "new" }, h("span.unseen", {}, name || "new"));
}
