// What the client sent beside what went upstream: unchanged messages folded, changes line by line.
import { carrierWords } from "./codes.js";
import { h } from "./dom.js";
import { bytes, plural } from "./format.js";
import { prose } from "./prose.js";
import { ruling } from "./replay.js";

export function difference(messages, jump) {
  if (!messages.length) return h("p.fine", {}, "The request carried no earlier answers.");
  const rows = [];
  let quiet = 0;
  const flush = () => {
    if (quiet) rows.push(h("li.unchanged", {}, `${plural(quiet, "message")} unchanged`));
    quiet = 0;
  };
  for (const message of messages) {
    if (!message.changed && !message.ruling) {
      quiet += 1;
      continue;
    }
    flush();
    rows.push(row(message, jump));
  }
  flush();
  return h("ol.difference", {}, rows);
}

function row(message, jump) {
  const lines = [
    ...(message.removed ?? []).map((piece) => line("removed", "−", "The client sent", piece)),
    ...(message.added ?? []).map((piece) => line("added", "+", "Went upstream", piece)),
  ];
  return h("li.message", { "data-changed": String(Boolean(message.changed)) },
    h("div.message-head", {}, h("span.position", {}, message.position + 1), h("code", {}, message.role),
      h("span.fine", {}, message.changed ? "changed on the way" : "as the client sent it")),
    message.preview && h("p.preview", {}, message.preview),
    lines.length > 0 && h("div.lines", {}, lines),
    message.ruling && ruling(message.ruling, jump));
}

function line(kind, sign, side, piece) {
  return h(`div.line.${kind}`, {},
    h("span.sign", { "aria-hidden": "true" }, sign), h("span.unseen", {}, `${side}: `),
    piece.carrier ? h("code", {}, carrierWords(piece.carrier)) : h("span", {}, kind === "removed" ? "a thought that is not in this log" : "a thought of another session"), piece.bytes !== null && h("span.fine", {}, bytes(piece.bytes)),
    piece.text && prose(piece.text));
}
