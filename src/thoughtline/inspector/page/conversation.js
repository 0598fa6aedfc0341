// One branch of a session from its first turn to its head; only what can be seen is in the page.
import { h } from "./dom.js";
import { article } from "./turn.js";
import { Windowed } from "./windowing.js";

export class Conversation {
  constructor({ scroller, shelf, tree, request, choose, permalink }) {
    Object.assign(this, { tree, shelf, request, choose, permalink });
    this.element = h("div.conversation", { role: "feed", "aria-label": "Conversation" });
    this.path = [];
    this.at = -1;
    this.windowed = new Windowed({
      scroller, list: this.element, guess: 320, beyond: 900,
      key: (turn) => turn.id,
      render: (turn, index) => this.#article(turn, index),
    });
  }

  end() {
    this.windowed.end();
  }

  #article(turn, index) {
    const { shelf, request, choose, permalink } = this;
    return article(turn, { shelf, request, choose, permalink, number: index + 1, siblings: this.tree.siblings(turn.id) });
  }

  /** Show the branch that ends here. `changed` names turns that look different now. */
  show(head, changed = null) {
    const last = this.path.at(-1);
    const follow = last && this.windowed.atEnd;
    this.path = this.tree.path(head);
    this.windowed.set(this.path, (turn) => !changed || changed.has(turn.id));
    if (follow && last !== this.path.at(-1)) this.windowed.toEnd();
  }

  /** Bring a turn to the top and put the focus on it. */
  jump(id) {
    const index = this.path.findIndex((turn) => turn.id === id);
    const node = this.windowed.reveal(index, "start");
    if (!node) return false;
    this.at = index;
    node.focus({ preventScroll: true });
    return true;
  }

  /** See to it that a turn can still be seen after the page was laid out anew. */
  keep(id) {
    this.windowed.reveal(this.windowed.indexOf(id));
  }

  toEnd() {
    this.windowed.toEnd();
  }

  /** The next or previous turn, by keyboard. */
  step(by) {
    if (!this.path.length) return;
    const held = document.activeElement?.closest?.("article.turn")?.dataset.key;
    const from = held ? this.windowed.indexOf(held) : this.at < 0 ? (by > 0 ? -1 : this.path.length) : this.at;
    const index = Math.min(this.path.length - 1, Math.max(0, from + by));
    this.jump(this.path[index].id);
  }

  /** The turn that has the focus, or else the last one. */
  current() {
    const held = document.activeElement?.closest?.("article.turn")?.dataset.key;
    return this.tree.turns.get(held) ?? this.path[this.at] ?? this.path.at(-1);
  }
}
