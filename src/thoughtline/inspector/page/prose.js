// What was said, as text. Fenced code becomes a block and `ticks` become code, by cutting strings;
// nothing else of any markup is understood, so markup is shown as it was written.
import { h, plain } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n([\s\S]*?)(?:\n {0,3}\1[`~]*[ \t]*(?:\n|$)|(?![\s\S]))/gm;
const MOST = 20000;

export function prose(text) {
  const made = h("div.prose");
  let from = 0;
  const shown = text.length > MOST ? text.slice(0, MOST) : text;
  for (const match of shown.matchAll(FENCE)) {
    paragraphs(made, shown.slice(from, match.index));
    made.append(h("pre.code", { tabindex: "0", role: "group", "aria-label": "Code" }, h("code", {}, match[2])));
    from = match.index + match[0].length;
  }
  paragraphs(made, shown.slice(from));
  if (shown.length < text.length) {
    made.append(h("button.linklike", { type: "button", onclick: (event) => event.target.replaceWith(plain(text.slice(MOST))) },
      `Show ${(text.length - MOST).toLocaleString("en")} more characters`));
  }
  return made;
}

function paragraphs(made, text) {
  if (!text.trim()) return;
  const block = h("p");
  text.trim().split(/(`[^`\n]+`)/).forEach((piece, index) => {
    if (index % 2) block.append(h("code", {}, piece.slice(1, -1)));
    else block.append(plain(piece));
  });
  made.append(block);
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const LONGEST = 200000;
const DEEPEST = 40; // from here on lines are not indented any further

/** JSON laid out for reading, every word of it as it was written; or the text itself where it is none. */
export function laidOut(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  if (text.length > LONGEST || !structured(text)) return text;
  const laid = [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  const tokens = text.match(TOKEN);
  tokens.forEach((token, at) => {
    const empty = /[{[]/.test(token) && /^[}\]]$/.test(tokens[at + 1]);
    const closes = /^[}\]]$/.test(token);
    if (/^[{[]$/.test(token)) depth += 1;
    if (closes) depth -= 1;
    if (closes && !/^[{[]$/.test(tokens[at - 1])) laid.push(line());
    laid.push(token === ":" ? ": " : token);
    if (token === "," || (/^[{[]$/.test(token) && !empty)) laid.push(line());
  });
  return laid.join("");
}

function structured(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}
