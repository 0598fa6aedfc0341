// Small things that all views share: status badges, empty, loading and error states, a dialog.
import { NotFound, Unreachable } from "./api.js";
import { copyText, h, icon, setChildren } from "./dom.js";
import { OUTCOMES, statusWords } from "./words.js";

const statusClass = (name) => (name in OUTCOMES ? name : "other");

export function statusBadge(name) {
  return h(`span.status.${statusClass(name)}`, {}, h("i", { "aria-hidden": "true" }), statusWords(name));
}

export function statusDot(name) {
  return h(`span.status-dot.${statusClass(name)}`, { title: statusWords(name) }, h("span.unseen", {}, statusWords(name)));
}

/** A button that copies what `text()` gives, and says so for a moment. */
export function copyButton(text, label, props = {}) {
  const button = h("button.icon-button.copy", { type: "button", "aria-label": label, title: label, ...props, onclick: async () => {
    await copyText(text());
    setChildren(button, icon("done"));
    setTimeout(() => setChildren(button, icon("copy")), 1500);
  } }, icon("copy"));
  return button;
}

/** A number and what it counts; `kind` gives its colour. */
export const tile = (value, label, kind = "") =>
  h(`li.tile${kind && `.${kind}`}`, {}, h("strong", {}, value), h("span", {}, label));

// -- states ---------------------------------------------------------------------------------------

export function loading(text = "Loading…") {
  return h("div.loading", { role: "status" }, h("span.dots", { "aria-hidden": "true" }, h("i"), h("i"), h("i")), text);
}

export function emptyState({ iconName, title, text, more = [] }) {
  return h("div.state", {}, h("div.state-icon", {}, icon(iconName, 22)), h("h2", {}, title), text && h("p", {}, text), more);
}

/** What to do when no client has used this gateway yet. */
export function noSessions() {
  const base = new URL("..", location.href).href.replace(/\/$/, "");
  return h("div.state.first", {},
    h("div.state-icon", {}, icon("plug", 22)),
    h("h2", {}, "No requests yet"),
    h("p", {}, "Point a client at this gateway and keep its key. Each request appears here while it happens."),
    h("pre.snippet", { tabindex: "0", role: "group", "aria-label": "Environment for clients" },
      h("code", {}, `export OPENAI_BASE_URL=${base}/v1\nexport ANTHROPIC_BASE_URL=${base}`)),
    h("p.fine", {}, "Nothing at hand? This asks a simulated model, without a key or a network:"),
    h("pre.snippet", { tabindex: "0", role: "group", "aria-label": "A first request" },
      h("code", {}, `curl ${base}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/deepseek","messages":[{"role":"user","content":"Hello"}]}'`)),
  );
}

/** An error, what to do about it, and a button that calls `retry`. */
export function errorState(error, retry) {
  const [title, text] = errorWords(error);
  return h("div.state", { role: "alert" },
    h("div.state-icon.bad", {}, icon(error instanceof Unreachable ? "plug" : "missed", 22)),
    h("h2", {}, title), h("p", {}, text),
    h("button.secondary", { type: "button", onclick: retry }, "Try again"));
}

function errorWords(error) {
  if (error instanceof Unreachable) {
    return ["The gateway does not answer", "Is `thoughtline serve` running? This page looks again by itself, and goes on where it was."];
  }
  if (error instanceof NotFound) {
    return ["It is not here", "It was deleted, expired, or never was on this gateway. The list shows what there is."];
  }
  return ["That did not work", error.message];
}

// -- confirmation ---------------------------------------------------------------------------------

/**
 * Asks before something is deleted for good; resolves to whether the person confirmed.
 * With a `word`, that has to be typed first.
 */
export function confirmed({ title, text, action, word }) {
  return new Promise((resolve) => {
    const yes = h("button.danger", { value: "yes", disabled: Boolean(word) }, action);
    const typed = word && h("input.field", { type: "text", autocomplete: "off", spellcheck: "false",
      oninput: () => { yes.disabled = typed.value.trim() !== word; } });
    const form = h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title), h("p", { id: "confirm-text" }, text),
      word && h("label.choice", {}, h("span", {}, `Type ${word} to confirm`), typed),
      h("div.row.end", {}, h("button.secondary", { value: "no", autofocus: true }, "Keep"), yes));
    const dialog = h("dialog.card", { "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
