// What a turn is made of: text, thoughts, tool calls and their results.
import { secondsSince, tickWhileConnected, timerWords } from "./clock.js";
import { h, icon, setChildren, visibleText } from "./dom.js";
import { marked } from "./highlight.js";
import { copyButton } from "./widgets.js";
import { bytes, carrierWords, count, times, verdictWords } from "./words.js";

export function parts(list, context) {
  return list.map((part, place) => partElement(part, { ...context, place })).filter(Boolean);
}

function partElement(part, context) {
  switch (part.type) {
    case "text": return context.difference?.get(part) ?? (part.text ? prose(part.text) : null);
    case "thought": return thoughtElement(part, context);
    case "call": return call(part, context);
    case "result": return result(part, context);
    case "decision": return decision(part);
    case "blob": return h("p.blob", {}, `[${part.kind || "attachment"}]`);
    default: return h("p.blob", {}, `[${part.type}]`);
  }
}

function call(part, context) {
  const brief = oneLine(part.arguments);
  return foldable("call", context, [icon("tool"), h("code.tool-name", {}, part.name), h("span.tool-brief", {}, brief)],
    () => [h("pre.code", { tabindex: "0", role: "group", "aria-label": "Arguments" }, h("code", {}, prettyJson(part.arguments))),
      h("p.fine.with-copy", {}, part.id && `call ${part.id}`, copyButton(() => part.arguments, "Copy the arguments"))]);
}

function result(part, context) {
  const content = typeof part.content === "string" ? part.content : prettyJson(part.content);
  return foldable(part.error ? "result failed" : "result", context,
    [icon("returned"), h("code.tool-name", {}, part.name || "result"), h("span.tool-brief", {}, oneLine(content)),
      part.error && h("span.tally.missed", {}, "error")],
    () => [h("pre.code", { tabindex: "0", role: "group", "aria-label": "Result" }, h("code", {}, prettyJson(content))),
      h("p.fine.with-copy", {}, `${count(content.length)} characters · answers call ${part.call}`, copyButton(() => content, "Copy the result"))]);
}

function decision(part) {
  return h("p.decision", {}, icon("key"), `Permission ${verdictWords(part.verdict)}`, part.reason && ` (${part.reason})`);
}

function foldable(kind, { turn, place, side, viewState }, head, body) {
  const id = `${turn.id}/${side}/${place}`;
  const details = h("details.tool", { open: viewState.open.has(id) },
    h("summary", { "data-focus": `${side}-${place}` }, ...head.filter(Boolean), icon("chevron", 14)));
  details.classList.add(...kind.split(" "));
  const show = () => details.children.length < 2 && details.append(h("div.tool-body", {}, body()));
  details.addEventListener("toggle", () => {
    if (details.open) viewState.open.add(id);
    else viewState.open.delete(id);
    if (details.open) show();
  });
  if (details.open) show();
  return details;
}

function oneLine(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return text.slice(0, 200).replace(/\s+/g, " ");
}

// -- thoughts -------------------------------------------------------------------------------------

/** `viewState` keeps what is unfolded and which texts were fetched while elements come and go. */
function thoughtElement(part, { turn, place, viewState }) {
  const id = `${turn.id}/${place}`;
  const open = viewState.open.has(id);
  const label = h("span.thought-label");
  const body = h("div.thought-body", { id: `thought-${id}`, hidden: !open });
  const button = h("button.thought-head", {
    type: "button", "aria-expanded": String(open), "aria-controls": body.id, "data-focus": `thought-${place}`,
    onclick: () => toggle(viewState, id, button, body, part, turn, place),
  }, icon(part.sealed ? "lock" : "thought"), label, h("span.thought-meta", {}, thoughtBadge(part)), icon("chevron", 14));
  const box = h("div.thought", { "data-state": part.duration.state, "data-thought": part.key }, button, body);
  if (part.duration.state === "open" && part.duration.startedAt) {
    tickWhileConnected(label, (gone) => (label.textContent = gone ? "Was thinking when the gateway was last seen" : timerWords(secondsSince(part.duration.startedAt))));
  } else {
    label.textContent = part.key === null ? "Signature" : part.duration.state === "open" ? "Thinking" : part.duration.label;
  }
  if (open) fillBody(body, part, turn, place, viewState);
  return box;
}

function thoughtBadge(part) {
  if (part.quarantined) return h("span.tally.missed", {}, "quarantined");
  if (part.forgotten) return h("span.tally", {}, "erased");
  if (part.damaged) return h("span.tally.missed", {}, "damaged");
  return part.replayed ? `replayed ${times(part.replayed)}` : "";
}

function toggle(viewState, id, button, body, part, turn, place) {
  const open = body.hidden;
  if (open) viewState.open.add(id);
  else viewState.open.delete(id);
  button.setAttribute("aria-expanded", String(open));
  body.hidden = !open;
  if (open) fillBody(body, part, turn, place, viewState);
}

function fillBody(body, part, turn, place, viewState) {
  const fetched = () => viewState.texts.get(`${turn.id}/${place}`);
  const show = (text) => setChildren(body, text && prose(text),
    h("p.fine.thought-facts", {}, thoughtFacts(part, text), text && copyButton(() => text, "Copy this thought")));
  const text = part.text ?? fetched();
  if (text !== undefined || part.forgotten) return show(text);
  if (part.duration.state === "open") return viewState.follow(turn.id, place, setChildren(body, h("div.prose.live", {}, h("p"))));
  setChildren(body, h("p.fine", { role: "status" }, "Fetching…"));
  return viewState.fetch(turn.id).then(
    () => show(fetched()),
    (error) => setChildren(body, h("p.wrong", { role: "alert" }, `It could not be fetched: ${error.message}`)),
  );
}

/** `Encrypted, 3.1 KB, replayed 4 times`. */
function thoughtFacts(part, text) {
  if (part.damaged) return "What is stored of it cannot be read. It is never sent again.";
  if (part.forgotten) return "Erased from the log on request; only how long it took is kept. It is never sent again.";
  const kind = part.sealed ? (text ? "Summary of an encrypted thought" : "Encrypted") : text ? "As the model wrote it" : "Without text";
  const again = part.replayed ? `replayed ${times(part.replayed)}` : "not replayed yet";
  const more = [
    part.duration.buffered && "timed from the request, because it came in one piece",
    part.quarantined && "quarantined: the provider refused it, so it is never sent again",
  ].filter(Boolean);
  return [`${kind}, ${bytes(part.bytes)}, ${again}`, `carried as ${carrierWords(part.carrier)}`, ...more].join(" · ");
}

// -- text -----------------------------------------------------------------------------------------

// Fenced code becomes a block and `ticks` become code, by cutting strings; nothing else of any markup is
// understood, so markup is shown as it was written.

const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n([\s\S]*?)(?:\n {0,3}\1[`~]*[ \t]*(?:\n|$)|(?![\s\S]))/gm;
const MAX_CHARACTERS = 20000;

export function prose(text) {
  const container = h("div.prose");
  let from = 0;
  const shown = text.length > MAX_CHARACTERS ? text.slice(0, MAX_CHARACTERS) : text;
  for (const match of shown.matchAll(FENCE)) {
    paragraphs(container, shown.slice(from, match.index));
    container.append(h("pre.code", { tabindex: "0", role: "group", "aria-label": "Code" }, h("code", {}, marked(match[2]))));
    from = match.index + match[0].length;
  }
  paragraphs(container, shown.slice(from));
  if (shown.length < text.length) {
    container.append(h("button.linklike", { type: "button", onclick: (event) => event.target.replaceWith(visibleText(text.slice(MAX_CHARACTERS))) },
      `Show ${(text.length - MAX_CHARACTERS).toLocaleString("en")} more characters`));
  }
  return container;
}

function paragraphs(container, text) {
  if (!text.trim()) return;
  const block = h("p");
  text.trim().split(/(`[^`\n]+`)/).forEach((piece, index) => {
    if (index % 2) block.append(h("code", {}, marked(piece.slice(1, -1))));
    else block.append(...marked(piece));
  });
  container.append(block);
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const MAX_JSON = 200000;
const MAX_INDENT = 40; // deeper lines are not indented further

/** One of two texts, with what the other one does not have in `del` or `ins`. */
export function changedProse(pieces, side) {
  const tag = side === "left" ? "del" : "ins";
  return h("div.prose.difference-text", {}, h("p", {}, pieces.filter(([kind]) => kind === "same" || kind === side)
    .map(([kind, text]) => (kind === "same" ? text : h(tag, {}, text)))));
}

/** JSON indented for reading, with every token as it was written; other text unchanged. */
export function prettyJson(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  if (text.length > MAX_JSON || !isJsonContainer(text)) return text;
  const lines = [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, MAX_INDENT))}`;
  const tokens = text.match(TOKEN);
  tokens.forEach((token, at) => {
    const empty = /[{[]/.test(token) && /^[}\]]$/.test(tokens[at + 1]);
    const closes = /^[}\]]$/.test(token);
    if (/^[{[]$/.test(token)) depth += 1;
    if (closes) depth -= 1;
    if (closes && !/^[{[]$/.test(tokens[at - 1])) lines.push(line());
    lines.push(token === ":" ? ": " : token);
    if (token === "," || (/^[{[]$/.test(token) && !empty)) lines.push(line());
  });
  return lines.join("");
}

function isJsonContainer(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}
