// One request, in a panel beside the conversation: what became of earlier thoughts, and the difference
// between what the client sent and what went upstream.
import * as api from "./api.js";
import { h, icon, iconButton, setChildren } from "./dom.js";
import { prose } from "./parts.js";
import { errorState, loading } from "./widgets.js";
import { bytes, carrierWords, count, dateTime, percent, plural, shortId } from "./words.js";

const COUNT_TILES = [
  ["restored", "put back"], ["replaced", "corrected"], ["exact", "exact"],
  ["missed", "missed"], ["tied", "tied"], ["placeholder", "placeholder"], ["dropped", "dropped"],
];

export class RequestPanel {
  constructor({ session, close, jump }) {
    Object.assign(this, { session, close, jump, turn: null, thoughts: false });
    this.body = h("div.panel-body", { tabindex: "0", role: "group", "aria-label": "Details of the request" });
    this.title = h("h2", { id: "request-title", tabindex: "-1" }, "Request");
    this.element = h("aside.panel", { hidden: true, "aria-labelledby": "request-title" },
      h("header.panel-head", {}, this.title, iconButton("close", "Close the request (Escape)", close)), this.body);
  }

  async show(turn, { focus = false } = {}) {
    const same = turn === this.turn;
    if (!same) this.thoughts = false;
    this.turn = turn;
    this.element.hidden = !turn;
    if (!turn) return;
    if (!same) setChildren(this.body, loading());
    if (focus) this.title.focus();
    try {
      const answer = await api.turn(this.session, turn, this.thoughts ? { thoughts: 1 } : {});
      if (this.turn === turn) this.#draw(answer);
    } catch (error) {
      if (this.turn === turn) setChildren(this.body, errorState(error, () => this.show(turn)));
    }
  }

  #draw({ turn, request }) {
    const { provider, endpoint, dialect, model } = turn.target ?? {};
    const counts = withoutDoubleCounts(turn.replay);
    const reveal = h("button.secondary.small", {
      type: "button", "aria-pressed": String(this.thoughts),
      onclick: () => {
        this.thoughts = !this.thoughts;
        this.show(turn.id);
      },
    }, this.thoughts ? "Hide the texts" : "Show the texts");
    setChildren(this.body,
      h("dl.facts-list", {},
        fact("Turn", h("code", { title: turn.id }, shortId(turn.id))), fact("Sent", dateTime(turn.started)),
        turn.replay?.thinkingOff && fact("Thinking", "switched off for this request: the provider demands a thought that is lost"),
        fact("To", [provider, endpoint].filter(Boolean).join(", ")), fact("As", [dialect, model].filter(Boolean).join(", ")),
        turn.usage?.input && fact("Prompt", `${count(turn.usage.input)} tokens, ${percent((turn.usage.cached ?? 0) / turn.usage.input)} from the provider's cache`)),
      h("ul.tiles.small", { "aria-label": "Thoughts of earlier turns in this request" },
        COUNT_TILES.map(([name, label]) => h(`li.tile.${name}`, { "data-zero": String(!counts[name]) },
          h("strong", {}, count(counts[name])), h("span", {}, label)))),
      h("div.section-head", {}, h("h3", {}, "From the client to the provider"), reveal),
      requestDiff(request?.messages ?? [], this.jump));
  }
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value || "–"));
}

// -- the difference -------------------------------------------------------------------------------

function requestDiff(messages, jump) {
  if (!messages.length) return h("p.fine", {}, "The request carried no earlier answers.");
  const rows = [];
  let unchanged = 0;
  const flush = () => {
    if (unchanged) rows.push(h("li.unchanged", {}, `${plural(unchanged, "message")} unchanged`));
    unchanged = 0;
  };
  for (const message of messages) {
    if (!message.changed && !message.ruling) {
      unchanged += 1;
      continue;
    }
    flush();
    rows.push(messageRow(message, jump));
  }
  flush();
  return h("ol.difference", {}, rows);
}

function messageRow(message, jump) {
  const lines = [
    ...(message.removed ?? []).map((change) => changeLine("removed", "−", "The client sent", change)),
    ...(message.added ?? []).map((change) => changeLine("added", "+", "Went upstream", change)),
  ];
  return h("li.message", { "data-changed": String(Boolean(message.changed)) },
    h("div.message-head", {}, h("span.position", {}, message.position + 1), h("code", {}, message.role),
      h("span.fine", {}, message.changed ? "changed on the way" : "as the client sent it")),
    message.preview && h("p.preview", {}, message.preview),
    lines.length > 0 && h("div.lines", {}, lines),
    message.ruling && decisionRow(message.ruling, jump));
}

function changeLine(kind, sign, side, change) {
  return h(`div.line.${kind}`, {},
    h("span.sign", { "aria-hidden": "true" }, sign), h("span.unseen", {}, `${side}: `),
    change.carrier ? h("code", {}, carrierWords(change.carrier)) : h("span", {}, kind === "removed" ? "a thought that is not in this log" : "a thought of another session"), change.bytes !== null && h("span.fine", {}, bytes(change.bytes)),
    change.text && prose(change.text));
}

// -- decisions ------------------------------------------------------------------------------------

const ACTIONS = {
  restored: { label: "Put back", iconName: "returned", text: "The client had lost it; it went upstream all the same." },
  exact: { label: "Exact", iconName: "returned", text: "The client still had it, unaltered." },
  replaced: { label: "Corrected", iconName: "returned", text: "The client's copy was altered; the original went upstream." },
  absent: { label: "Without", iconName: "dropped", text: "Went upstream without a thought, which is allowed there." },
  placeholder: { label: "Placeholder", iconName: "missed", text: "The thought is lost; the shortest value that the provider accepts stood in." },
  dropped: { label: "Dropped", iconName: "dropped", text: "It may not go there, so it was left out." },
};

const REASONS = {
  "": "",
  "made up by the client": "the client wrote this answer itself, and no model",
  unknown: "no remembered turn looks like this one",
  lineage: "recognised by the turn that came after it",
  open: "several remembered turns look like it, and this is the one that was not continued yet",
  equal: "several remembered turns look like it, all with the same thoughts",
  ambiguous: "several remembered turns look like it, and guessing is not allowed",
  uncorroborated: "a turn looks like it, but nothing else speaks for it",
  "ruled out": "a turn looks like it, but what the client sends points to another conversation",
  quarantined: "the provider refused this thought before, or it came damaged, so it is never sent again",
  forgotten: "it was deleted from the cache",
  unreadable: "what is stored of it is damaged",
  dangling: "nothing followed it, and providers refuse a thought that leads nowhere",
  unsigned: "it has no signature, and this provider refuses such a thought",
  "prefix changed": "the client has changed what stands before it, and its signature covers that",
  "before a gap": "a later one is missing, and these must come back without a gap",
  "over the limit": "the settings limit how many old thoughts go back",
  "client's own": "the client brought one that this gateway has not seen",
  "had none": "the turn had no thought",
  "ignored there": "the provider does not read thoughts at this place",
  renamed: "it went under the key that this provider reads",
  "unreadable there": "this provider has no place for a thought of that kind",
  refused: "the provider refused it once, so it stays out",
  "thinking off": "thinking is switched off for this request, and then none may be sent",
  forbidden: "this provider forbids thoughts in requests",
  none: "this provider knows no thoughts",
};

const UNREAD = {
  organization: "it was made for another organization",
  end_user: "it was made for another end user",
  model: "this model cannot read what that model thought",
  prefix: "what stands before it has changed",
  turn_boundary: "the request asked for the thoughts of the running turn only",
};

const MATCH_LEVELS = {
  chain: "recognised by the whole conversation before it",
  near: "recognised by the messages around it",
  seal: "recognised by its own seal or id",
  alone: "recognised by the message itself and one more sign",
  none: "not recognised",
};

function reasonWords(reason) {
  if (reason in REASONS) return REASONS[reason];
  const foreign = /^foreign (\w+)$/.exec(reason);
  if (foreign) return `it was made for another ${foreign[1]}, and it is bound to that`;
  const ended = /^turn (\w+)$/.exec(reason);
  if (ended) return `its turn was ${ended[1]}, and such thoughts stay out of requests`;
  return `the log says “${reason}”`;
}

const matchWords = (level) => MATCH_LEVELS[level] ?? level;

const SUMMARISED = [
  ["restored", "put back"], ["replaced", "corrected"], ["exact", "exact"],
  ["missed", "missed"], ["tied", "tied"], ["placeholder", "placeholder"], ["dropped", "dropped"],
];

/** Counts in which a missed or tied output with a placeholder counts as a placeholder only. */
export function withoutDoubleCounts(counts) {
  const { missed = 0, tied = 0, placeholder = 0 } = counts ?? {};
  const rest = Math.max(0, placeholder - missed);
  return { ...counts, missed: Math.max(0, missed - placeholder), tied: Math.max(0, tied - rest) };
}

/** `3 put back · 1 dropped`, or null when the request had no earlier thoughts. */
export function decisionSummary(replay) {
  const counts = withoutDoubleCounts(replay);
  const tallies = SUMMARISED.filter(([name]) => counts[name]).map(([name, label]) =>
    h(`span.tally.${name}`, {}, `${counts[name]} ${label}`));
  if (replay?.unread) tallies.push(h("span.tally.missed", {}, `${replay.unread} unread`));
  if (replay?.thinkingOff) tallies.push(h("span.tally.missed", {}, "thinking off"));
  return tallies.length ? h("span.tallies", {}, tallies) : null;
}

/** One decision: what was done with which message, how its turn was found, and why. */
function decisionRow(decision, jump) {
  const action = ACTIONS[decision.action] ?? { label: decision.action, iconName: "missed", text: "" };
  const why = reasonWords(decision.reason ?? "");
  const found = decision.rung && decision.rung !== "none" ? matchWords(decision.rung) : "";
  const amounts = [
    decision.thoughts && `${plural(decision.thoughts, "thought")} went out`,
    decision.left && `${plural(decision.left, "thought")} stayed behind`,
  ].filter(Boolean).join(", ");
  return h(`div.replay-decision.${decision.action}`, {},
    h("div.replay-decision-head", {}, icon(action.iconName), h("strong", {}, action.label), amounts && h("span", {}, amounts),
      decision.turn && jump && h("button.linklike", { type: "button", onclick: () => jump(decision.turn) }, "show its turn")),
    h("p", {}, action.text, why && ` Why: ${why}.`),
    decision.unread && h("p.unread", {}, `The provider kept it from the model: ${UNREAD[decision.unread] ?? "it does not say why"}.`),
    found && h("p.fine", {}, `How: ${found} (match level “${decision.rung}”).`));
}
