// What became of earlier thoughts in a request, in words that need no glossary.
import { h, icon } from "./dom.js";
import { plural } from "./format.js";

export const ACTIONS = {
  restored: { label: "Put back", drawn: "returned", text: "The client had lost it; it went upstream all the same." },
  exact: { label: "Sent along", drawn: "returned", text: "The client still had it, unaltered." },
  replaced: { label: "Corrected", drawn: "returned", text: "The client's copy was altered; the original went upstream." },
  absent: { label: "Without", drawn: "dropped", text: "Went upstream without a thought, which is allowed there." },
  placeholder: { label: "Placeholder", drawn: "missed", text: "The thought is lost; the shortest value that the provider accepts stood in." },
  dropped: { label: "Dropped", drawn: "dropped", text: "It may not go there, so it was left out." },
};

const REASONS = {
  "": "",
  unknown: "no remembered turn looks like this one",
  lineage: "the turn after it is certain, and this is the one that it went on from",
  ambiguous: "several remembered turns look like it, and guessing is not allowed",
  uncorroborated: "a turn looks like it, but nothing else speaks for it",
  quarantined: "the provider refused this thought before, so it is never sent again",
  forgotten: "it was deleted from the cache",
  dangling: "nothing followed it, and providers refuse a thought that leads nowhere",
  "prefix changed": "what stands before it has changed, and its signature covers that",
  "before a gap": "a later one is missing, and these must come back without a gap",
  "over the limit": "the settings limit how many old thoughts go back",
  "client's own": "the client brought one that this gateway has not seen",
  "had none": "the turn had no thought",
  "ignored there": "the provider does not read thoughts at this place",
  renamed: "it went under the key that this provider reads",
  "unreadable there": "this provider has no place for a thought of that kind",
  refused: "the provider refused it once, so it stays out",
  forbidden: "this provider forbids thoughts in requests",
  none: "this provider knows no thoughts",
};

const RUNGS = {
  chain: "recognised by the whole conversation before it",
  near: "recognised by the messages around it",
  seal: "recognised by its own seal or id",
  alone: "recognised by the message itself and one more sign",
  none: "not recognised",
};

export function reasonWords(reason) {
  if (reason in REASONS) return REASONS[reason];
  const foreign = /^foreign (\w+)$/.exec(reason);
  if (foreign) return `it was made for another ${foreign[1]}, and it is bound to that`;
  const ended = /^turn (\w+)$/.exec(reason);
  if (ended) return `its turn was ${ended[1]}, and such thoughts stay out of requests`;
  return `the log says “${reason}”`;
}

export const rungWords = (rung) => RUNGS[rung] ?? rung;

const SHOWN = [
  ["restored", "put back"], ["replaced", "corrected"], ["exact", "sent along"],
  ["dropped", "dropped"], ["missed", "missing"], ["placeholder", "placeholder"],
];

/** Each thought once: one that is missing, and for which a placeholder stood in, is only the latter. */
export function once(counts) {
  return { ...counts, missed: Math.max(0, (counts?.missed ?? 0) - (counts?.placeholder ?? 0)) };
}

/** `3 put back · 1 dropped`, or null when the request had nothing to carry. */
export function summary(replay) {
  const counts = once(replay);
  const said = SHOWN.filter(([name]) => counts[name]).map(([name, label]) =>
    h(`span.tally.${name}`, {}, `${counts[name]} ${label}`));
  return said.length ? h("span.tallies", {}, said) : null;
}

/** One ruling: what was done, with which message, how it was found, and why. */
export function ruling(ruled, jump) {
  const action = ACTIONS[ruled.action] ?? { label: ruled.action, drawn: "missed", text: "" };
  const why = reasonWords(ruled.reason ?? "");
  const found = ruled.rung && ruled.rung !== "none" ? rungWords(ruled.rung) : "";
  const amounts = [
    ruled.thoughts && `${plural(ruled.thoughts, "thought")} went out`,
    ruled.left && `${plural(ruled.left, "thought")} stayed behind`,
  ].filter(Boolean).join(", ");
  return h(`div.ruling.${ruled.action}`, {},
    h("div.ruling-head", {}, icon(action.drawn), h("strong", {}, action.label), amounts && h("span", {}, amounts),
      ruled.turn && jump && h("button.linklike", { type: "button", onclick: () => jump(ruled.turn) }, "show its turn")),
    h("p", {}, action.text, why && ` Why: ${why}.`),
    found && h("p.fine", {}, `How: ${found} (rung “${ruled.rung}”).`));
}
