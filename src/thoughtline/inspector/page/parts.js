// What a turn is made of, each kind in its own dress.
import { verdictWords } from "./codes.js";
import { h, icon } from "./dom.js";
import { count } from "./format.js";
import { laidOut, prose } from "./prose.js";
import { thought } from "./thought.js";

export function parts(list, context) {
  return list.map((part, place) => one(part, { ...context, place })).filter(Boolean);
}

function one(part, context) {
  switch (part.type) {
    case "text": return part.text ? prose(part.text) : null;
    case "thought": return thought(part, context);
    case "call": return call(part, context);
    case "result": return result(part, context);
    case "decision": return decision(part);
    case "blob": return h("p.blob", {}, `[${part.kind || "attachment"}]`);
    default: return h("p.blob", {}, `[${part.type}]`);
  }
}

function call(part, context) {
  const brief = oneLine(part.arguments);
  return fold("call", context, [icon("tool"), h("code.tool-name", {}, part.name), h("span.tool-brief", {}, brief)],
    () => [h("pre.code", { tabindex: "0", role: "group", "aria-label": "Arguments" }, h("code", {}, laidOut(part.arguments))),
      part.id && h("p.fine", {}, `call ${part.id}`)]);
}

function result(part, context) {
  const content = typeof part.content === "string" ? part.content : laidOut(part.content);
  return fold(part.error ? "result failed" : "result", context,
    [icon("returned"), h("code.tool-name", {}, part.name || "result"), h("span.tool-brief", {}, oneLine(content)),
      part.error && h("span.tally.missed", {}, "error")],
    () => [h("pre.code", { tabindex: "0", role: "group", "aria-label": "Result" }, h("code", {}, laidOut(content))),
      h("p.fine", {}, `${count(content.length)} characters · answers call ${part.call}`)]);
}

function decision(part) {
  return h("p.decision", {}, icon("key"), `Permission ${verdictWords(part.verdict)}`, part.reason && ` (${part.reason})`);
}

function fold(kind, { turn, place, side, shelf }, head, body) {
  const id = `${turn.id}/${side}/${place}`;
  const details = h("details.tool", { open: shelf.open.has(id) },
    h("summary", { "data-focus": `${side}-${place}` }, ...head.filter(Boolean), icon("chevron", 14)));
  details.classList.add(...kind.split(" "));
  const show = () => details.children.length < 2 && details.append(h("div.tool-body", {}, body()));
  details.addEventListener("toggle", () => {
    if (details.open) shelf.open.add(id);
    else shelf.open.delete(id);
    if (details.open) show();
  });
  if (details.open) show();
  return details;
}

function oneLine(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return text.slice(0, 200).replace(/\s+/g, " ");
}
