// The turns of a session as the tree they are; a branch is two turns with one parent.

export class Tree {
  turns = new Map();
  #children = new Map();
  #parents = new Map(); // only of turns that were there before: a log that goes in a circle is still a tree

  /** Add turns, or newer versions of those that are known; a parent comes before its children. */
  add(turns) {
    for (const turn of turns) {
      if (!this.turns.has(turn.id)) {
        const parent = this.turns.has(turn.parent) ? turn.parent : null;
        this.#parents.set(turn.id, parent);
        if (this.#children.has(parent)) this.#children.get(parent).push(turn.id);
        else this.#children.set(parent, [turn.id]);
      }
      this.turns.set(turn.id, turn);
      this.#name(turn);
    }
  }

  /** Results say which call they answer; what was called stands with the call. */
  #name(turn) {
    const nameless = turn.input.filter((part) => part.type === "result" && !part.name);
    if (!nameless.length) return;
    const calls = this.turns.get(this.#parents.get(turn.id))?.output.filter((part) => part.type === "call" && part.id) ?? [];
    for (const part of nameless) part.name = calls.find((call) => call.id === part.call)?.name ?? "";
  }

  /** Note how often thoughts went back; the turns of which that was not known. */
  replayed(counts) {
    const other = (part, id) => part.type === "thought" && part.replayed !== counts[id];
    const changed = Object.keys(counts).filter((id) => this.turns.get(id)?.output.some((part) => other(part, id)));
    for (const id of changed) for (const part of this.turns.get(id).output) if (other(part, id)) part.replayed = counts[id];
    return changed;
  }

  /** Forget a turn that never came to be; one that others go on from stays. */
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

  /** From the first turn to this one. */
  path(head) {
    const path = [];
    for (let turn = this.turns.get(head); turn; turn = this.turns.get(this.#parents.get(turn.id))) path.push(turn);
    return path.reverse();
  }

  /** Turns with the same parent, itself among them. */
  siblings(id) {
    return this.children(this.#parents.get(id) ?? null);
  }

  /** Turns that nothing follows, oldest first. */
  heads() {
    return [...this.turns.values()].filter((turn) => !this.children(turn.id).length)
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

  /** What two branches share, and where each goes on alone. */
  split(left, right) {
    const [a, b] = [this.path(left), this.path(right)];
    let shared = 0;
    while (shared < a.length && shared < b.length && a[shared].id === b[shared].id) shared += 1;
    return { common: a.slice(0, shared), left: a.slice(shared), right: b.slice(shared) };
  }
}
