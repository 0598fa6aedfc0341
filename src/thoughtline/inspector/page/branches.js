// The turns of a session as a tree; a branch is two turns with one parent. Choose and compare branches.
import { turnArticle } from "./conversation.js";
import { textDiff } from "./diff.js";
import { h, icon, visibleText } from "./dom.js";
import { changedProse } from "./parts.js";
import { link } from "./router.js";
import { ago, plural } from "./words.js";

export class TurnTree {
  turns = new Map();
  #children = new Map();
  #parents = new Map(); // only turns that came before: a log that goes in a circle is still a tree

  /** Adds turns, or newer versions of those that are known; a parent comes before its children. */
  add(turns) {
    for (const turn of turns) {
      if (!this.turns.has(turn.id)) {
        const parent = this.turns.has(turn.parent) ? turn.parent : null;
        this.#parents.set(turn.id, parent);
        if (this.#children.has(parent)) this.#children.get(parent).push(turn.id);
        else this.#children.set(parent, [turn.id]);
      }
      this.turns.set(turn.id, turn);
      this.#nameResults(turn);
    }
  }

  /** Gives results the name of the tool: they say only which call they answer. */
  #nameResults(turn) {
    const nameless = turn.input.filter((part) => part.type === "result" && !part.name);
    if (!nameless.length) return;
    const calls = this.turns.get(this.#parents.get(turn.id))?.output.filter((part) => part.type === "call" && part.id) ?? [];
    for (const part of nameless) part.name = calls.find((call) => call.id === part.call)?.name ?? "";
  }

  /** Takes in how often thoughts went back; returns the turns for which that is new. */
  setReplayed(counts) {
    const other = (part, id) => part.type === "thought" && part.replayed !== counts[id];
    const changed = Object.keys(counts).filter((id) => this.turns.get(id)?.output.some((part) => other(part, id)));
    for (const id of changed) for (const part of this.turns.get(id).output) if (other(part, id)) part.replayed = counts[id];
    return changed;
  }

  /** Removes a turn that was never written; one that others go on from stays. */
  remove(id) {
    if (!this.turns.has(id) || this.children(id).length) return;
    const parent = this.#parents.get(id);
    this.#children.set(parent, this.children(parent).filter((one) => one !== id));
    this.#parents.delete(id);
    this.turns.delete(id);
  }

  children(id) {
    return this.#children.get(id) ?? [];
  }

  /** The turns from the first one to this one. */
  path(head) {
    const path = [];
    for (let turn = this.turns.get(head); turn; turn = this.turns.get(this.#parents.get(turn.id))) path.push(turn);
    return path.reverse();
  }

  /** Turns beside the conversation, in which a client asks for a title, say: without the tools that it begins with. */
  sideRequests() {
    const begun = this.children(null);
    const tooled = begun.filter((id) => this.turns.get(id).tools);
    return tooled.length ? begun.filter((id) => !tooled.includes(id) && !this.children(id).length) : [];
  }

  /** Turns with the same parent, itself among them. */
  siblings(id) {
    const aside = this.sideRequests();
    return this.children(this.#parents.get(id) ?? null).filter((one) => one === id || !aside.includes(one));
  }

  /** Turns that nothing follows, oldest first. */
  heads() {
    const aside = this.sideRequests();
    return [...this.turns.values()].filter((turn) => !this.children(turn.id).length && !aside.includes(turn.id))
      .sort((a, b) => a.started - b.started).map((turn) => turn.id);
  }

  newest() {
    return this.heads().at(-1) ?? null;
  }

  /** The newest head below a turn. */
  leaf(id) {
    for (let children = this.children(id); children.length; children = this.children(id)) id = children.at(-1);
    return id;
  }

  /** The turns that two branches share, and those that each has alone. */
  split(left, right) {
    const [a, b] = [this.path(left), this.path(right)];
    let shared = 0;
    while (shared < a.length && shared < b.length && a[shared].id === b[shared].id) shared += 1;
    return { common: a.slice(0, shared), left: a.slice(shared), right: b.slice(shared) };
  }
}

// -- choosing and comparing -----------------------------------------------------------------------

const MAX_TURNS = 100;
const MIN_SAME = 0.4; // of two texts, from where on their difference is marked
const MAX_CHARACTERS = 40000; // of two texts that are compared word by word
const MAX_NAME = 40; // characters of a branch's name

/** A choice of branches; null where there is only one. */
export function branchPicker(tree, head, { label, choose, id }) {
  const heads = tree.heads();
  if (heads.length < 2) return null;
  const select = h("select.field.small", { id, "data-focus": id, onchange: () => choose(select.value) },
    heads.map((one, index) => h("option", { value: one, selected: one === head },
      `${index + 1} of ${heads.length} · ${branchName(tree, one)} · ${plural(tree.path(one).length, "turn")} · ${ago(tree.turns.get(one).started)}`)));
  return h("span.picker", {}, h("label.unseen", { for: id }, label), icon("branch"), select);
}

/** The first words of what was asked where a branch divides from the others. */
function branchName(tree, head) {
  const fork = tree.path(head).findLast((turn) => tree.siblings(turn.id).length > 1) ?? tree.turns.get(head);
  const first = fork.input.find((part) => part.type === "text" && part.text) ?? fork.output.find((part) => part.type === "text" && part.text);
  const words = visibleText((first?.text ?? "").trim().replace(/\s+/g, " "));
  return words.length > MAX_NAME ? `${words.slice(0, MAX_NAME).trimEnd()}…` : words || "without words";
}

/** The branch to compare this one with: the newest other one. */
export function otherBranch(tree, head) {
  return tree.heads().filter((one) => one !== head).at(-1);
}

/** Two branches side by side, from the turn after which they divide, with what differs marked. */
export function branchComparison(tree, session, { left, right, viewState, request }) {
  const split = tree.split(left, right);
  const choose = (side) => (head) => {
    location.hash = link(["sessions", session, "compare"], { left, right, [side]: head });
  };
  const differences = split.left.map((turn, index) => split.right[index] && differenceOf(turn, split.right[index]));
  const article = (turn, number, head, difference) => turnArticle(turn, {
    viewState, request, number, siblings: [], choose: () => {}, difference, permalink: (id) => link(["sessions", session], { head, turn: id }),
  });
  const column = (side, turns, head) =>
    h("section.column", { "aria-label": side === "left" ? "First branch" : "Second branch" },
      h("header.column-head", {}, branchPicker(tree, head, { label: `The ${side} branch`, choose: choose(side), id: `pick-${side}` })),
      turns.length ? turns.slice(0, MAX_TURNS).map((turn, index) => article(turn, split.common.length + index + 1, head, differences[index]?.[side]))
        : h("p.fine.pad", {}, "This branch ends where the other one goes on."),
      turns.length > MAX_TURNS && h("p.fine.pad", {}, `${plural(turns.length - MAX_TURNS, "more turn")}: `,
        h("a", { href: link(["sessions", session], { head, turn: turns[MAX_TURNS].id }) }, "read on in this branch")));
  const fork = split.common.at(-1);
  return h("div.comparison", {},
    h("p.common", {}, icon("branch"), split.common.length
      ? `${plural(split.common.length, "turn")} in common, then they part. Where most is the same, what differs is marked.`
      : "They have no turn in common."),
    fork && h("section.fork", { "aria-label": "The last turn in common" }, article(fork, split.common.length, left)),
    h("div.columns", {}, column("left", split.left, left), column("right", split.right, right)));
}

/** How much of two texts is the same, from 0 to 1. */
function sameShare(pieces) {
  const length = (kinds) => pieces.filter(([kind]) => kinds.includes(kind)).reduce((sum, [, text]) => sum + text.trim().length, 0);
  return (2 * length(["same"])) / (2 * length(["same"]) + length(["left", "right"]) || 1);
}

/** The texts of two turns with what differs marked: by part, for each side. */
function differenceOf(left, right) {
  const marks = { left: new Map(), right: new Map() };
  for (const side of ["input", "output"]) {
    const texts = (turn) => turn[side].filter((part) => part.type === "text" && part.text);
    const [mine, others] = [texts(left), texts(right)];
    mine.forEach((part, index) => {
      const other = others[index];
      if (!other || part.text === other.text || part.text.length + other.text.length > MAX_CHARACTERS) return;
      const pieces = textDiff(part.text, other.text);
      if (sameShare(pieces) < MIN_SAME) return; // two texts of their own: marks would be confetti
      marks.left.set(part, changedProse(pieces, "left"));
      marks.right.set(other, changedProse(pieces, "right"));
    });
  }
  return marks;
}
