// What to show when there is nothing to show: empty, loading, gone wrong; each says what to do.
import { Missing, Unreachable } from "./api.js";
import { h, icon } from "./dom.js";

export function loading(text = "Loading…") {
  return h("div.loading", { role: "status" }, h("span.dots", { "aria-hidden": "true" }, h("i"), h("i"), h("i")), text);
}

export function empty({ drawn, title, text, more = [] }) {
  return h("div.state", {}, h("div.state-icon", {}, icon(drawn, 22)), h("h2", {}, title), text && h("p", {}, text), more);
}

/** Nobody has talked through this gateway yet: how to begin. */
export function noSessions() {
  const base = new URL("..", location.href).href.replace(/\/$/, "");
  return h("div.state.first", {},
    h("div.state-icon", {}, icon("plug", 22)),
    h("h2", {}, "No sessions yet"),
    h("p", {}, "Point a client at this gateway and keep its key. Each conversation appears here while it happens."),
    h("pre.snippet", { tabindex: "0", role: "group", "aria-label": "Environment for clients" },
      h("code", {}, `export OPENAI_BASE_URL=${base}/v1\nexport ANTHROPIC_BASE_URL=${base}`)),
    h("p.fine", {}, "Nothing at hand? This asks a simulated model, without a key or a network:"),
    h("pre.snippet", { tabindex: "0", role: "group", "aria-label": "A first request" },
      h("code", {}, `curl ${base}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/deepseek","messages":[{"role":"user","content":"Hello"}]}'`)),
  );
}

/** An error as a person can use it; `again` is called by the button. */
export function trouble(error, again) {
  const [title, text] = said(error);
  return h("div.state", { role: "alert" },
    h("div.state-icon.bad", {}, icon(error instanceof Unreachable ? "plug" : "missed", 22)),
    h("h2", {}, title), h("p", {}, text),
    h("button.secondary", { type: "button", onclick: again }, "Try again"));
}

function said(error) {
  if (error instanceof Unreachable) {
    return ["The gateway does not answer", "Is `thoughtline serve` running? This page looks again by itself, and goes on where it was."];
  }
  if (error instanceof Missing) {
    return ["It is not here", "It was deleted, expired, or never was on this gateway. The list shows what there is."];
  }
  return ["That did not work", error.message];
}
