// One thought: folded to "Thought for 23 seconds", a timer while it runs, its text when asked for.
import { each, running, since } from "./clock.js";
import { carrierWords } from "./codes.js";
import { h, icon } from "./dom.js";
import { bytes, times } from "./format.js";
import { prose } from "./prose.js";

/** `shelf` keeps what is unfolded and what was fetched while elements come and go. */
export function thought(part, { turn, place, shelf }) {
  const id = `${turn.id}/${place}`;
  const open = shelf.open.has(id);
  const label = h("span.thought-label");
  const body = h("div.thought-body", { id: `thought-${id}`, hidden: !open });
  const button = h("button.thought-head", {
    type: "button", "aria-expanded": String(open), "aria-controls": body.id, "data-focus": `thought-${place}`,
    onclick: () => toggle(shelf, id, button, body, part, turn, place),
  }, icon(part.sealed ? "lock" : "thought"), label, h("span.thought-meta", {}, meta(part)), icon("chevron", 14));
  const box = h("div.thought", { "data-state": part.duration.state, "data-thought": part.key }, button, body);
  if (part.duration.state === "open" && part.duration.startedAt) {
    each(label, () => (label.textContent = running(since(part.duration.startedAt))));
  } else {
    label.textContent = part.key === null ? "Signature" : part.duration.state === "open" ? "Thinking" : part.duration.label;
  }
  if (open) unfold(body, part, turn, place, shelf);
  return box;
}

function meta(part) {
  if (part.quarantined) return h("span.tally.missed", {}, "quarantined");
  if (part.forgotten) return h("span.tally", {}, "erased");
  return part.replayed ? `replayed ${times(part.replayed)}` : "";
}

function toggle(shelf, id, button, body, part, turn, place) {
  const open = body.hidden;
  if (open) shelf.open.add(id);
  else shelf.open.delete(id);
  button.setAttribute("aria-expanded", String(open));
  body.hidden = !open;
  if (open) unfold(body, part, turn, place, shelf);
}

function unfold(body, part, turn, place, shelf) {
  const known = part.text ?? shelf.texts.get(`${turn.id}/${place}`);
  if (known !== undefined) {
    body.replaceChildren(...said(part, known));
    return;
  }
  if (part.forgotten) {
    body.replaceChildren(...said(part, ""));
    return;
  }
  if (part.duration.state === "open") {
    body.replaceChildren(h("p.fine", {}, "It can be read when it is complete."));
    return;
  }
  body.replaceChildren(h("p.fine", { role: "status" }, "Fetching…"));
  shelf.fetch(turn.id).then(
    () => body.replaceChildren(...said(part, shelf.texts.get(`${turn.id}/${place}`))),
    (error) => body.replaceChildren(h("p.wrong", { role: "alert" }, `It could not be fetched: ${error.message}`)),
  );
}

function said(part, text) {
  return [
    text && prose(text),
    h("p.fine.thought-facts", {}, facts(part, text)),
  ].filter(Boolean);
}

/** `Encrypted, 3.1 KB, replayed 4 times`. */
export function facts(part, text) {
  if (part.forgotten) return "Erased when it was deleted from the cache; only how long it took is kept. It is never sent again.";
  const kind = part.sealed ? (text ? "Summary of an encrypted thought" : "Encrypted") : text ? "As the model wrote it" : "Without text";
  const again = part.replayed ? `replayed ${times(part.replayed)}` : "not replayed yet";
  const more = [
    part.duration.buffered && "timed from the request, because the provider delivered it at once",
    part.quarantined && "quarantined: the provider refused it, so it is never sent again",
  ].filter(Boolean);
  return [`${kind}, ${bytes(part.bytes)}, ${again}`, `carried as ${carrierWords(part.carrier)}`, ...more].join(" · ");
}
