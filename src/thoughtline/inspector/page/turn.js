// One exchange as an article: what came in, what the model did, and what the request carried.
import { endingWords } from "./codes.js";
import { h, icon, iconButton } from "./dom.js";
import { count, moment, short, took } from "./format.js";
import { parts } from "./parts.js";
import { summary } from "./replay.js";

const OUTCOMES = {
  failed: "Failed", capped: "Cut off", aborted: "Stopped by the client",
};

export function article(turn, context) {
  const { shelf, number } = context;
  const name = `turn-${turn.id}`;
  return h("article.turn", {
    id: name, tabindex: "-1", "aria-labelledby": `${name}-label`, "data-outcome": turn.outcome ?? (turn.running ? "running" : ""),
  },
  h("h2.unseen", { id: `${name}-label` }, `Turn ${number}`),
  heard(turn, shelf),
  h("div.answer", {},
    parts(turn.output, { turn, side: "output", shelf }),
    turn.running && waiting(turn),
    ended(turn)),
  foot(turn, context));
}

function heard(turn, shelf) {
  const answers = (part) => part.type === "result" || part.type === "decision";
  const spoken = turn.input.filter((part) => !answers(part));
  const results = turn.input.filter(answers);
  return [
    results.length > 0 && h("div.results", {}, parts(results, { turn, side: "input", shelf })),
    spoken.length > 0 && h("div.asked", {}, parts(spoken, { turn, side: "asked", shelf })),
  ];
}

function waiting(turn) {
  if (turn.elsewhere) return h("p.waiting", {}, "No end is written: it is under way in another process, or that process died.");
  const thinking = turn.output.some((part) => part.type === "thought" && part.duration.state === "open");
  if (thinking) return null;
  return h("p.waiting", {}, h("span.dots", { "aria-hidden": "true" }, h("i"), h("i"), h("i")),
    turn.output.length ? "Answering" : "Waiting for the model");
}

function ended(turn) {
  const label = OUTCOMES[turn.outcome];
  if (!label) return null;
  return h(`p.outcome.${turn.outcome}`, {}, icon(turn.outcome === "failed" ? "missed" : "dropped"), label,
    turn.reason && h("span", {}, endingWords(turn.reason)));
}

function foot(turn, { request, siblings, choose, permalink }) {
  const { provider = "", model = "" } = turn.target ?? {};
  const total = turn.output.filter((part) => part.type === "thought").length > 1 && turn.thinking?.seconds;
  return h("footer.turn-foot", {},
    siblings.length > 1 && switcher(turn, siblings, choose),
    h("button.request-button", { type: "button", "data-focus": "request", onclick: () => request(turn.id) },
      summary(turn.replay) ?? "Nothing to put back", icon("chevron", 12)),
    h("span.facts", {},
      total && h("span", {}, `${turn.thinking.label} in all`),
      h("span", { title: [provider, model].filter(Boolean).join(", ") }, model || provider),
      usage(turn.usage),
      turn.ended && h("span", { title: moment(turn.started) }, took(turn.started, turn.ended)),
      h("a.turn-link", { href: permalink(turn.id), title: turn.id, "aria-label": `Link to turn ${turn.id}` }, icon("link", 14))));
}

function usage(used) {
  if (!used?.input) return null;
  const cached = used.cached && used.input ? `, ${Math.round((used.cached / used.input) * 100)} % cached` : "";
  return h("span", { title: `${count(used.input)} tokens in, ${count(used.cached)} of them cached; ${count(used.output)} out, ${count(used.reasoning)} of them thought` },
    `${short(used.input)} in${cached}`);
}

function switcher(turn, siblings, choose) {
  const at = siblings.indexOf(turn.id);
  const to = (step) => () => choose(siblings[(at + step + siblings.length) % siblings.length]);
  return h("span.switcher", { role: "group", "aria-label": `Branch ${at + 1} of ${siblings.length}` },
    iconButton("back", "Previous branch", to(-1), { "data-focus": "previous-branch" }),
    h("span", { "aria-hidden": "true" }, `${at + 1} / ${siblings.length}`),
    iconButton("chevron", "Next branch", to(1), { "data-focus": "next-branch" }));
}
