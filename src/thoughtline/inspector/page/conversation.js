// One branch of a session from its first turn to its head; each turn is an article.
import { h, icon, iconButton } from "./dom.js";
import { parts } from "./parts.js";
import { decisionSummary } from "./request.js";
import { timelineBar, timelineWords, usageNotes } from "./timeline.js";
import { VirtualList } from "./virtual-list.js";
import { copyButton } from "./widgets.js";
import { dateTime, elapsed, endingWords } from "./words.js";

export class Conversation {
  constructor({ scroller, viewState, tree, request, choose, permalink }) {
    Object.assign(this, { tree, viewState, request, choose, permalink });
    this.element = h("div.conversation", { role: "feed", "aria-label": "Conversation" });
    this.path = [];
    this.at = -1;
    this.virtualList = new VirtualList({
      scroller, list: this.element, estimatedHeight: 320, overscan: 900,
      key: (turn) => turn.id,
      render: (turn, index) => this.#article(turn, index),
    });
  }

  end() {
    this.virtualList.end();
  }

  #article(turn, index) {
    const { viewState, request, choose, permalink } = this;
    return turnArticle(turn, { viewState, request, choose, permalink, number: index + 1, siblings: this.tree.siblings(turn.id) });
  }

  /** Shows the branch that ends at `head`; `changed` names the turns to draw anew (null: all). */
  show(head, changed = null) {
    const last = this.path.at(-1);
    const follow = last && this.virtualList.atEnd;
    this.path = this.tree.path(head);
    this.virtualList.set(this.path, (turn) => !changed || changed.has(turn.id));
    if (follow && last !== this.path.at(-1)) this.virtualList.toEnd();
  }

  /** Scrolls a turn to the top and puts the focus on it. */
  jump(id) {
    const index = this.path.findIndex((turn) => turn.id === id);
    const node = this.virtualList.reveal(index, "start");
    if (!node) return false;
    this.at = index;
    node.focus({ preventScroll: true });
    return true;
  }

  /** Keeps a turn in sight after the page was laid out anew. */
  keepInSight(id) {
    this.virtualList.reveal(this.virtualList.indexOf(id));
  }

  toEnd() {
    this.virtualList.toEnd();
  }

  /** Goes to the next or previous turn, by keyboard. */
  step(by) {
    if (!this.path.length) return;
    const focused = document.activeElement?.closest?.("article.turn")?.dataset.key;
    const from = focused ? this.virtualList.indexOf(focused) : this.at < 0 ? (by > 0 ? -1 : this.path.length) : this.at;
    const index = Math.min(this.path.length - 1, Math.max(0, from + by));
    this.jump(this.path[index].id);
  }

  /** The turn that has the focus, or else the last one. */
  current() {
    const focused = document.activeElement?.closest?.("article.turn")?.dataset.key;
    return this.tree.turns.get(focused) ?? this.path[this.at] ?? this.path.at(-1);
  }
}

// -- one turn -------------------------------------------------------------------------------------

const OUTCOMES = {
  failed: "Failed", capped: "Cut off", aborted: "Stopped",
};

export function turnArticle(turn, context) {
  const { viewState, number, difference } = context;
  const name = `turn-${turn.id}`;
  return h("article.turn", {
    id: name, tabindex: "-1", "aria-labelledby": `${name}-label`, "data-outcome": turn.outcome ?? (turn.running ? "running" : ""),
  },
  h("h2.unseen", { id: `${name}-label` }, `Turn ${number}`),
  turnInput(turn, viewState, difference),
  h("div.answer", {},
    parts(turn.output, { turn, side: "output", viewState, difference }),
    turn.running && waitingNote(turn),
    outcomeNote(turn)),
  turnFooter(turn, context));
}

function turnInput(turn, viewState, difference) {
  const answers = (part) => part.type === "result" || part.type === "decision";
  const spoken = turn.input.filter((part) => !answers(part));
  const results = turn.input.filter(answers);
  return [
    results.length > 0 && h("div.results", {}, parts(results, { turn, side: "input", viewState })),
    spoken.length > 0 && h("div.asked", {}, parts(spoken, { turn, side: "asked", viewState, difference })),
  ];
}

function waitingNote(turn) {
  if (turn.elsewhere) return h("p.waiting", {}, "No end is written: it is under way in another process, or that process died.");
  const thinking = turn.output.some((part) => part.type === "thought" && part.duration.state === "open");
  if (thinking) return null;
  return h("p.waiting", {}, h("span.dots", { "aria-hidden": "true" }, h("i"), h("i"), h("i")),
    turn.output.length ? "Answering" : "Waiting for the model");
}

function outcomeNote(turn) {
  const label = turn.outcome === "aborted" && turn.reason === "the client left" ? "Stopped by the client" : OUTCOMES[turn.outcome];
  if (!label) return null;
  return h(`p.outcome.${turn.outcome}`, {}, icon(turn.outcome === "failed" ? "missed" : "dropped"), label,
    turn.reason && h("span", {}, endingWords(turn.reason)));
}

function turnFooter(turn, { request, siblings, choose, permalink }) {
  const { provider = "", model = "" } = turn.target ?? {};
  const total = turn.output.filter((part) => part.type === "thought").length > 1 && turn.thinking?.seconds;
  const said = turn.output.filter((part) => part.type === "text" && part.text).map((part) => part.text).join("\n\n");
  return h("footer.turn-foot", {},
    timelineBar(turn),
    siblings.length > 1 && branchSwitcher(turn, siblings, choose),
    h("button.request-button", { type: "button", "data-focus": "request", onclick: () => request(turn.id) },
      decisionSummary(turn.replay) ?? "Nothing to put back", icon("chevron", 12)),
    h("span.facts", {},
      total && h("span", {}, `${turn.thinking.label} in all`),
      h("span", { title: [provider, model].filter(Boolean).join(", ") }, model || provider),
      usageNotes(turn),
      turn.ended && h("span", { title: `${dateTime(turn.started)}. ${timelineWords(turn)}` }, elapsed(turn.started, turn.ended)),
      said && copyButton(() => said, "Copy the answer", { "data-focus": "copy-answer" }),
      h("a.turn-link", { href: permalink(turn.id), title: turn.id, "aria-label": `Link to turn ${turn.id}` }, icon("link", 14))));
}

function branchSwitcher(turn, siblings, choose) {
  const at = siblings.indexOf(turn.id);
  const to = (step) => () => choose(siblings[(at + step + siblings.length) % siblings.length]);
  return h("span.switcher", { role: "group", "aria-label": `Branch ${at + 1} of ${siblings.length}` },
    iconButton("back", "Previous branch", to(-1), { "data-focus": "previous-branch" }),
    h("span", { "aria-hidden": "true" }, `${at + 1} / ${siblings.length}`),
    iconButton("chevron", "Next branch", to(1), { "data-focus": "next-branch" }));
}
