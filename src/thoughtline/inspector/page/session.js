// One session: its head line, its branches, its conversation, and the request that is looked at.
import * as api from "./api.js";
import { comparison, rival } from "./branches.js";
import { confirmed } from "./confirm.js";
import { Conversation } from "./conversation.js";
import { announce, calmly, h, put } from "./dom.js";
import { count } from "./format.js";
import { feed } from "./feed.js";
import { Heading, origin } from "./heading.js";
import { RequestPanel } from "./request.js";
import { adjust, go, link } from "./router.js";
import { loading, trouble } from "./states.js";
import { Tree } from "./tree.js";

const COVERED = matchMedia("(max-width: 860px)"); // here the request lies over the conversation

const AGAIN = 2000; // milliseconds after a look that failed
const OLDER = 8; // turns that are fetched by themselves at a time

export class SessionPane {
  constructor(id, { problem }) {
    Object.assign(this, { id, problem, tree: new Tree(), dirty: new Set(), closed: new Set(), facts: null, ended: false });
    this.heading = new Heading({ id, remove: () => this.#delete() });
    this.scroller = h("div.session-scroll", { tabindex: "0", role: "group", "aria-label": "Session" });
    this.request = new RequestPanel({ session: id, close: () => this.#closeRequest(), jump: (turn) => adjust({ turn }) });
    this.main = h("div.session-main", {}, this.heading.element, this.scroller);
    this.element = h("section.session", { "aria-label": "Session" }, this.main, this.request.element);
    this.shelf = { open: new Set(), texts: new Map(), fetch: (turn) => this.#texts(turn) };
    this.soon = calmly(120, () => this.#refresh());
    this.onfeed = ({ detail }) => {
      if (detail.session !== id || detail.kind === "text") return;
      if (detail.turn) this.dirty.add(detail.turn);
      if (detail.kind === "turn_closed") this.closed.add(detail.turn);
      this.soon();
    };
    feed.addEventListener("event", this.onfeed);
    feed.addEventListener("live", this.onfeed);
    this.onsize = () => (this.main.inert = Boolean(this.request.turn) && COVERED.matches);
    COVERED.addEventListener("change", this.onsize);
  }

  end() {
    this.ended = true;
    this.soon.cancel();
    feed.removeEventListener("event", this.onfeed);
    feed.removeEventListener("live", this.onfeed);
    COVERED.removeEventListener("change", this.onsize);
    this.conversation?.end();
  }

  // -- loading -----------------------------------------------------------------------------------

  async load(route) {
    this.route = route;
    this.loading = true;
    put(this.scroller, loading());
    try {
      for (let after; after !== null && !this.ended; ) {
        const page = await api.session(this.id, { after, limit: 200 });
        this.#take(page);
        after = page.nextAfter ?? null;
        if (after) put(this.scroller, loading(`Loading turn ${count(this.tree.turns.size)} of ${count(page.session.turns)}…`));
      }
      if (this.ended) return;
      this.update(this.route, { first: true });
      if (document.activeElement === document.body) this.scroller.focus({ preventScroll: true });
    } catch (error) {
      if (!this.ended) this.#fail(error);
    }
    this.loading = false;
  }

  /** The feed is there, again or for the first time: what ended before it is not told. */
  resume() {
    this.doubt = true;
    if (this.facts || this.loading) this.soon();
    else this.load(this.route);
  }

  #fail(error) {
    if (this.problem(error)) return;
    this.facts = null;
    this.conversation?.end();
    this.conversation = null;
    this.heading.fail(this.route);
    put(this.scroller, trouble(error, () => this.load(this.route)));
  }

  /** Take in an answer; which of the turns that were known look different now. */
  #take(page) {
    this.facts = page.session;
    this.forked = page.forkedFrom;
    this.tree.add(page.turns);
    return this.tree.replayed(page.replayed ?? {});
  }

  /** One look at a time: an answer that is overtaken would bring back what is over. */
  async #refresh() {
    if (this.ended) return;
    if (this.loading || this.looking) return this.soon();
    if (!this.facts) return;
    this.looking = true;
    try {
      await this.#fetch();
    } finally {
      this.looking = false;
    }
  }

  /** Fetch what has changed, and only that. */
  async #fetch() {
    const { dirty, closed } = this;
    this.dirty = new Set();
    this.closed = new Set();
    const known = [...this.tree.turns.values()];
    if (this.doubt) for (const turn of known) if (turn.running && !turn.elsewhere) closed.add(turn.id); // perhaps
    this.doubt = false;
    const before = this.#head();
    try {
      const whole = known.findLast((turn) => !dirty.has(turn.id) && !turn.running);
      const page = await this.#since(whole?.id);
      const turns = new Map(page.turns.map((turn) => [turn.id, turn]));
      const older = [...dirty].filter((turn) => this.tree.turns.has(turn) && !turns.has(turn));
      for (const turn of older.splice(OLDER)) this.dirty.add(turn);
      const answers = await Promise.all(older.map((turn) => api.turn(this.id, turn).catch(unwritten)));
      for (const answer of answers) if (answer) turns.set(answer.turn.id, answer.turn);
      if (this.ended) return;
      this.#tell(turns.values());
      const again = this.#take({ ...page, turns: turns.values() });
      this.#forget([...closed].filter((turn) => !turns.has(turn)));
      const grown = this.tree.path(this.#head()).some((turn) => turn.id === before);
      if (this.route.query.head && !grown) adjust({ head: this.tree.leaf(this.route.query.head) }, { replace: true });
      else this.update(this.route, { changed: new Set([...dirty, ...turns.keys(), ...again]) });
      if (this.dirty.size) this.soon();
    } catch (error) {
      if (this.ended) return;
      if (error instanceof api.Missing) this.#fail(error);
      else {
        for (const turn of dirty) this.dirty.add(turn);
        for (const turn of closed) this.closed.add(turn);
        setTimeout(() => this.soon(), AGAIN);
      }
    }
  }

  /** What comes after a turn, and the session as it is now. */
  async #since(after) {
    const page = await api.session(this.id, { after, limit: 200 });
    while (page.nextAfter && !this.ended) {
      const next = await api.session(this.id, { after: page.nextAfter, limit: 200 });
      Object.assign(page, next, { turns: [...page.turns, ...next.turns], replayed: { ...page.replayed, ...next.replayed } });
    }
    return page;
  }

  /** Turns that ran and are not in the log: refused by the provider, or lost with the gateway. */
  #forget(turns) {
    for (const turn of turns) if (this.tree.turns.get(turn)?.running) this.tree.remove(turn);
  }

  /** Say once that a thought has ended; a timer that talks each second helps nobody. */
  #tell(turns) {
    for (const turn of turns) {
      const before = this.tree.turns.get(turn.id);
      const was = before?.output.filter((part) => part.type === "thought" && part.duration.state === "open").length ?? 0;
      const done = turn.output.filter((part) => part.type === "thought" && part.duration.state !== "open").at(-1);
      if (!before && turn.running) announce("A new turn began");
      else if (was && done && !turn.output.some((part) => part.duration?.state === "open")) announce(done.duration.label);
    }
  }

  async #texts(turn) {
    const answer = await api.turn(this.id, turn, { thoughts: 1 });
    answer.turn.output.forEach((part, place) => {
      if (part.type === "thought") this.shelf.texts.set(`${turn}/${place}`, part.text);
    });
  }

  // -- showing -----------------------------------------------------------------------------------

  #head() {
    const asked = this.route.query.head;
    if (asked && this.tree.turns.has(asked)) return this.tree.leaf(asked);
    const turn = this.route.query.turn ?? this.route.query.request;
    const newest = this.tree.newest();
    if (turn && this.tree.turns.has(turn) && !this.tree.path(newest).some((one) => one.id === turn)) return this.tree.leaf(turn);
    return newest;
  }

  update(route, { first = false, changed = null } = {}) {
    const before = this.route;
    this.route = route;
    if (!this.facts) return;
    this.heading.show({ facts: this.facts, tree: this.tree, head: this.#head(), route, live: Boolean(changed) });
    const { turn, request } = route.query;
    const opened = request !== (this.request.turn ?? undefined);
    this.element.toggleAttribute("data-request", Boolean(request));
    this.main.inert = Boolean(request) && COVERED.matches;
    if (opened || changed?.has(request)) this.request.show(request ?? null, { focus: !first && !changed });
    if (route.path[2] === "compare") this.#compare(route.query);
    else {
      this.#converse(changed);
      const asked = turn && (first || turn !== before.query.turn);
      if (asked) this.conversation.jump(turn);
      else if (first) this.conversation.toEnd();
      else if (opened) this.conversation.keep(request ?? before.query.request);
    }
  }

  #converse(changed) {
    if (!this.conversation) {
      this.conversation = new Conversation({
        scroller: this.scroller, shelf: this.shelf, tree: this.tree,
        request: (turn) => adjust({ request: turn }),
        choose: (turn) => adjust({ head: this.tree.leaf(turn), turn }),
        permalink: (turn) => link(["sessions", this.id], { turn, head: this.route.query.head }),
      });
      changed = null;
    }
    const shown = this.#head();
    const same = shown === this.shown || changed;
    if (!this.conversation.element.isConnected) put(this.scroller, origin(this.forked), this.conversation.element);
    this.conversation.show(shown, same && this.shown ? changed ?? new Set() : null);
    this.shown = shown;
  }

  #compare({ left, right }) {
    this.conversation?.end();
    this.conversation = null;
    this.shown = null;
    const one = this.tree.turns.has(left) ? left : this.#head();
    const other = this.tree.turns.has(right) ? right : rival(this.tree, one) ?? one;
    put(this.scroller, comparison(this.tree, this.id, {
      left: one, right: other, shelf: this.shelf, request: (turn) => adjust({ request: turn }),
    }));
  }

  async #delete() {
    const meant = await confirmed({ title: "Delete this session?", action: "Delete",
      text: "All its turns and thoughts will be gone for good. A conversation that is under way goes on without its earlier thoughts." });
    if (!meant) return;
    try {
      await api.discard(this.id);
      announce("Session deleted");
      go(["sessions"]);
    } catch (error) {
      if (!this.problem(error)) put(this.scroller, trouble(error, () => this.load(this.route)));
    }
  }

  // -- keys --------------------------------------------------------------------------------------

  #closeRequest() {
    const turn = this.request.turn;
    adjust({ request: undefined });
    this.conversation?.windowed.node(turn)?.querySelector("[data-focus=request]")?.focus();
  }

  step(by) {
    this.conversation?.step(by);
  }

  /** The branch before or after, at the turn that is looked at or else the last fork above it. */
  branch(by) {
    const turn = this.conversation?.current();
    const fork = turn && this.tree.path(turn.id).findLast((one) => this.tree.siblings(one.id).length > 1);
    if (!fork) return announce("There is no other branch here");
    const siblings = this.tree.siblings(fork.id);
    const next = siblings[(siblings.indexOf(fork.id) + by + siblings.length) % siblings.length];
    adjust({ head: this.tree.leaf(next), turn: next });
  }

  /** Unfold or fold the thoughts of the turn that is looked at. */
  thoughts() {
    const turn = this.conversation?.current();
    this.conversation?.windowed.node(turn?.id)?.querySelectorAll(".thought-head").forEach((one) => one.click());
  }

  look() {
    const turn = this.conversation?.current();
    if (turn) adjust({ request: turn.id });
  }

  /** Close the topmost thing; false when there is nothing to close. */
  escape() {
    if (!this.request.turn) return false;
    this.#closeRequest();
    return true;
  }
}

function unwritten(error) {
  if (error instanceof api.Missing) return null;
  throw error;
}
