// Where the time went: a bar for a turn, and the bars of a whole branch one below the other.
import { h, s } from "./dom.js";
import { elapsed, exactly, moneyOf, percent, count, compact, plural } from "./words.js";

const KINDS = { waiting: "first token after", thinking: "thought", answering: "answered" };
const MAX_TURNS = 150;

/** A bar of a turn's stretches, with what it shows in words; null where nothing was measured. */
export function timelineBar(turn, longest) {
  const total = turn.ended && turn.ended - turn.started;
  if (!total) return null;
  const segments = turn.timeline?.length ? turn.timeline : [{ kind: "unknown", start: 0, end: total }];
  const whole = Math.max(longest ?? total, 0.001);
  const svg = s("svg.timeline", { viewBox: "0 0 1000 6", preserveAspectRatio: "none", role: "img", "aria-label": timelineWords(turn) });
  for (const { kind, start, end } of segments) {
    svg.append(s(`rect.${kind}`, { x: (start / whole) * 1000, y: 0, width: Math.max(2, ((end - start) / whole) * 1000), height: 6 }));
  }
  svg.append(s("title", {}, timelineWords(turn)));
  return svg;
}

/** `First token after 400 ms, thought 23 s, answered 2 s`. */
export function timelineWords(turn) {
  const sums = {};
  for (const { kind, start, end } of turn.timeline ?? []) sums[kind] = (sums[kind] ?? 0) + end - start;
  const said = Object.entries(KINDS).filter(([kind]) => sums[kind])
    .map(([kind, label]) => `${label} ${kind === "thinking" && turn.thinking?.seconds ? elapsed(0, turn.thinking.seconds) : exactly(sums[kind])}`);
  const words = said.join(", ") || `took ${elapsed(turn.started, turn.ended)}`;
  return words[0].toUpperCase() + words.slice(1);
}

/** What a session took and cost, and a bar for each turn of the branch that is open. */
export function overview({ facts, path, jump }) {
  const spent = facts.spending;
  const shown = path.filter((turn) => turn.ended).slice(-MAX_TURNS);
  const longest = Math.max(...shown.map((turn) => turn.ended - turn.started), 0.001);
  const skipped = path.length - shown.length;
  return [
    h("h2", { id: "overview-title" }, "Overview"),
    h("dl.spent", {},
      pair("Tokens in", spent.input ? `${count(spent.input)}` : "–", spent.input ? `${percent(spent.cached / spent.input)} from the provider's cache` : ""),
      pair("Tokens out", spent.output ? count(spent.output) : "–", spent.reasoning ? `${count(spent.reasoning)} of them thought` : ""),
      pair("Cost", moneyOf(spent), costNote(spent)),
      pair("Earlier thoughts", count(facts.restored + facts.replaced + facts.exact), [
        facts.restored && `${count(facts.restored)} put back`, facts.missed && `${count(facts.missed)} missed`, facts.tied && `${count(facts.tied)} tied`, facts.dropped && `${count(facts.dropped)} dropped`,
        facts.thinkingOff && `thinking off in ${plural(facts.thinkingOff, "request")}`,
      ].filter(Boolean).join(", "))),
    shown.length > 0 && [
      h("div.section-head", {}, h("h3", {}, "Timeline"), h("ul.legend", { "aria-label": "Colours" },
        ["waiting", "thinking", "answering"].map((kind) => h(`li.${kind}`, {}, h("i", { "aria-hidden": "true" }), kind)))),
      skipped > 0 && h("p.fine", {}, `The last ${count(shown.length)} of ${count(path.length)} turns`),
      h("ol.turn-bars", {}, shown.map((turn) => h("li", {}, h("button", { type: "button", onclick: () => jump(turn.id), title: timelineWords(turn) },
        h("span.bar-name", {}, barName(turn)), timelineBar(turn, longest), h("span.bar-time", {}, elapsed(turn.started, turn.ended)))))),
    ],
  ];
}

function pair(name, value, note) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), note && h("span", {}, note)));
}

/** Whether a table of prices of this day is more than 60 days old. */
export function isOld(day) {
  return Date.now() - Date.parse(day) > 60 * 86_400_000;
}

/** Why a cost is not the whole truth. */
export function costNote({ cost, costApproximate, unpriced }) {
  if (cost === null || cost === undefined) return unpriced ? "no price is known; set one under [prices]" : "";
  return unpriced ? `without ${plural(unpriced, "turn")} whose price is not known` : costApproximate ? "about: some models are priced as their family is" : "by the table of public prices";
}

/** What a turn was about, in a word or two: its tool, or what was said. */
function barName(turn) {
  const call = turn.output.find((part) => part.type === "call");
  if (call) return call.name;
  const text = turn.output.find((part) => part.type === "text" && part.text)?.text ?? turn.input.find((part) => part.type === "text")?.text ?? turn.outcome ?? "";
  return text.trim().slice(0, 60).replace(/\s+/g, " ");
}

/** Tokens of a turn on one line, and what they cost. */
export function usageNotes(turn) {
  const used = turn.usage;
  if (!used?.input) return [];
  const cached = used.cached ? ` (${percent(used.cached / used.input)} cached)` : "";
  const thought = used.reasoning ? ` (${compact(used.reasoning)} thought)` : "";
  const full = `${count(used.input)} tokens in, ${count(used.cached)} of them from the provider's cache, ${count(used.cacheWrite)} written to it; ${count(used.output)} out, ${count(used.reasoning)} of them thought`;
  return [h("span", { title: full }, `${compact(used.input)} in${cached}`), used.output !== null && h("span", { title: full }, `${compact(used.output)} out${thought}`),
    turn.cost !== null && h("span", { title: "By the table of public prices, or your own" }, moneyOf(turn))];
}
