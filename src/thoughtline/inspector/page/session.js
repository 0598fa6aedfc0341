// One session: its heading, its conversation or two branches of it, and the request that is open.
import * as api from "./api.js";
import { TurnTree, branchComparison, branchPicker, otherBranch } from "./branches.js";
import { Conversation } from "./conversation.js";
import { announce, h, icon, iconButton, recall, remember, setChildren, throttled, visibleText } from "./dom.js";
import { exportDialog } from "./export.js";
import { feed } from "./feed.js";
import { setHighlight } from "./highlight.js";
import { RequestPanel } from "./request.js";
import { changeQuery, link, navigate } from "./router.js";
import { severalTenants } from "./tenants.js";
import { overview } from "./timeline.js";
import { confirmed, copyButton, errorState, loading, statusBadge } from "./widgets.js";
import { ago, compact, count, dateTime, moneyOf, plural, shortId } from "./words.js";

const NARROW = matchMedia("(max-width: 860px)"); // here the request panel covers the conversation

const RETRY_DELAY = 2000; // milliseconds after a request that failed
const MAX_OLDER = 8; // older turns that are fetched one by one at a time
const FOLLOW_DELAY = 600; // milliseconds between two looks at a thought that is being thought
const OVERVIEW_KEY = "thoughtline.overview";
const ROOMY = matchMedia("(min-width: 1500px)"); // here the overview stands beside the conversation

export class SessionPane {
  constructor(id, { handleError }) {
    Object.assign(this, { id, handleError, tree: new TurnTree(), dirty: new Set(), closed: new Set(), facts: null, ended: false });
    this.heading = new Heading({ id, remove: () => this.#delete(), save: () => exportDialog(id, this.facts), toggle: () => this.#toggleOverview() });
    this.rail = h("aside.rail", { "aria-labelledby": "overview-title", tabindex: "0", hidden: !ROOMY.matches || recall("localStorage", OVERVIEW_KEY) === "off" });
    this.followed = new Map(); // place of a thought that is being thought → the element that shows it
    this.scroller = h("div.session-scroll", { tabindex: "0", role: "group", "aria-label": "Session" });
    this.request = new RequestPanel({ session: id, close: () => this.#closeRequest(), jump: (turn) => changeQuery({ turn }) });
    this.main = h("div.session-main", {}, this.heading.element, this.scroller);
    this.element = h("section.session", { "aria-label": "Session" }, this.main, this.rail, this.request.element);
    this.viewState = {
      open: new Set(), texts: new Map(), partial: new Map(), fetch: (turn) => this.#texts(turn), follow: (turn, place, body) => this.#follow(turn, place, body),
    };
    this.scheduleRefresh = throttled(120, () => this.#refresh());
    this.onfeed = ({ detail }) => {
      if (detail.session !== id || detail.kind === "text") return;
      if (detail.turn) this.dirty.add(detail.turn);
      if (detail.kind === "turn_closed") this.closed.add(detail.turn);
      this.scheduleRefresh();
    };
    feed.addEventListener("event", this.onfeed);
    feed.addEventListener("live", this.onfeed);
    this.onoutdated = ({ detail }) => {
      if (detail.kind === "forget" || (detail.session ?? id) !== id) return;
      this.outdated = true;
      this.scheduleRefresh();
    };
    feed.addEventListener("outdated", this.onoutdated);
    this.onsize = () => (this.main.inert = Boolean(this.request.turn) && NARROW.matches);
    NARROW.addEventListener("change", this.onsize);
  }

  end() {
    this.ended = true;
    this.scheduleRefresh.cancel();
    clearTimeout(this.following);
    setHighlight("");
    feed.removeEventListener("event", this.onfeed);
    feed.removeEventListener("live", this.onfeed);
    feed.removeEventListener("outdated", this.onoutdated);
    NARROW.removeEventListener("change", this.onsize);
    this.conversation?.end();
  }

  // -- loading -----------------------------------------------------------------------------------

  async load(route) {
    this.route = route;
    this.loading = true;
    setChildren(this.scroller, loading());
    try {
      for (let after; after !== null && !this.ended; ) {
        const page = await api.session(this.id, { after, limit: 200 });
        this.#take(page);
        after = page.nextAfter ?? null;
        if (after) setChildren(this.scroller, loading(`Loading turn ${count(this.tree.turns.size)} of ${count(page.session.turns)}…`));
      }
      if (this.ended) return;
      this.update(this.route, { first: true });
      if (document.activeElement === document.body) this.scroller.focus({ preventScroll: true });
    } catch (error) {
      if (!this.ended) this.#fail(error);
    }
    this.loading = false;
  }

  /** The feed is connected, again or for the first time: it does not tell what ended before. */
  resume() {
    this.mayHaveMissed = true;
    if (this.facts || this.loading) this.scheduleRefresh();
    else this.load(this.route);
  }

  #fail(error) {
    if (this.handleError(error)) return;
    this.facts = null;
    this.conversation?.end();
    this.conversation = null;
    this.heading.fail(this.route);
    setChildren(this.scroller, errorState(error, () => this.load(this.route)));
  }

  /** Takes in an answer; returns the known turns that changed with it. */
  #take(page) {
    this.facts = page.session;
    this.forked = page.forkedFrom;
    this.tree.add(page.turns);
    return this.tree.setReplayed(page.replayed ?? {});
  }

  /** Refreshes once at a time: an answer that is overtaken would bring back what is over. */
  async #refresh() {
    if (this.ended) return;
    if (this.loading || this.refreshing) return this.scheduleRefresh();
    if (!this.facts) return;
    this.refreshing = true;
    try {
      await this.#fetch();
    } finally {
      this.refreshing = false;
    }
  }

  /** Fetches what has changed, and only that; all of it once something was deleted. */
  async #fetch() {
    const { dirty, closed, outdated } = this;
    this.dirty = new Set();
    this.closed = new Set();
    this.outdated = false;
    const known = [...this.tree.turns.values()];
    if (this.mayHaveMissed) for (const turn of known) if (turn.running && !turn.elsewhere) closed.add(turn.id); // it may have ended
    this.mayHaveMissed = false;
    const before = this.#head();
    try {
      const lastWritten = !outdated && known.findLast((turn) => !dirty.has(turn.id) && !turn.running);
      const page = await this.#since(lastWritten ? lastWritten.id : undefined);
      const turns = new Map(page.turns.map((turn) => [turn.id, turn]));
      const older = [...dirty].filter((turn) => this.tree.turns.has(turn) && !turns.has(turn));
      for (const turn of older.splice(MAX_OLDER)) this.dirty.add(turn);
      const answers = await Promise.all(older.map((turn) => api.turn(this.id, turn).catch(nullIfMissing)));
      for (const answer of answers) if (answer) turns.set(answer.turn.id, answer.turn);
      if (this.ended) return;
      if (outdated) this.#forget(known.filter((turn) => !turns.has(turn.id)));
      this.#announce(turns.values());
      const drawn = new Map([...turns.keys()].map((id) => [id, JSON.stringify(this.tree.turns.get(id))]));
      const again = this.#take({ ...page, turns: turns.values() });
      const other = [...turns.keys()].filter((id) => drawn.get(id) !== JSON.stringify(this.tree.turns.get(id)));
      this.#removeUnwritten([...closed].filter((turn) => !turns.has(turn)));
      const grown = this.tree.path(this.#head()).some((turn) => turn.id === before);
      if (this.route.query.head && !grown) changeQuery({ head: this.tree.leaf(this.route.query.head) }, { replace: true });
      else this.update(this.route, { changed: new Set([...other, ...again, ...(outdated ? [this.request.turn] : [])]) });
      if (this.dirty.size) this.scheduleRefresh();
    } catch (error) {
      if (this.ended) return;
      if (error instanceof api.NotFound) this.#fail(error);
      else {
        for (const turn of dirty) this.dirty.add(turn);
        for (const turn of closed) this.closed.add(turn);
        this.outdated ||= outdated;
        setTimeout(() => this.scheduleRefresh(), RETRY_DELAY);
      }
    }
  }

  /** The turns after one, and the session as it is now. */
  async #since(after) {
    const page = await api.session(this.id, { after, limit: 200 });
    while (page.nextAfter && !this.ended) {
      const next = await api.session(this.id, { after: page.nextAfter, limit: 200 });
      Object.assign(page, next, { turns: [...page.turns, ...next.turns], replayed: { ...page.replayed, ...next.replayed } });
    }
    return page;
  }

  /** Forgets the texts of thoughts, and turns that are not in the log any more. */
  #forget(gone) {
    this.viewState.texts.clear();
    this.viewState.partial.clear();
    for (const turn of gone.reverse()) this.tree.remove(turn.id); // what goes on from a turn comes after it
  }

  /** Removes turns that ran and are not in the log: the provider refused them, or the gateway died. */
  #removeUnwritten(turns) {
    for (const turn of turns) if (this.tree.turns.get(turn)?.running) this.tree.remove(turn);
  }

  /** Announces once that a thought has ended; a timer that talks each second helps nobody. */
  #announce(turns) {
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
      if (part.type === "thought") this.viewState.texts.set(`${turn}/${place}`, part.text);
    });
  }

  /** Shows a thought while it is being thought, for as long as its element is in the page. */
  #follow(turn, place, body) {
    const id = `${turn}/${place}`;
    this.followed.set(id, body);
    body.querySelector("p").textContent = this.viewState.partial.get(id) ?? "";
    this.following ??= setTimeout(() => this.#look(), 0);
  }

  async #look() {
    const shown = () => [...this.followed].filter(([, body]) => body.isConnected && !body.hidden && body.querySelector(".live"));
    this.followed = new Map(shown());
    for (const turn of new Set([...this.followed.keys()].map((id) => id.split("/")[0]))) {
      const answer = await api.turn(this.id, turn, { thoughts: 1 }).catch(() => null);
      if (this.ended) return;
      answer?.turn.output.forEach((part, place) => {
        const id = `${turn}/${place}`;
        const body = part.type === "thought" && this.followed.get(id);
        if (!body || !part.text) return;
        const atEnd = this.conversation?.virtualList.atEnd;
        this.viewState.partial.set(id, part.text);
        const paragraph = body.querySelector(".live p");
        if (paragraph && paragraph.textContent !== visibleText(part.text)) paragraph.textContent = visibleText(part.text);
        if (atEnd) this.conversation.toEnd();
      });
    }
    this.following = shown().length && !this.ended ? setTimeout(() => this.#look(), FOLLOW_DELAY) : undefined;
  }

  // -- showing -----------------------------------------------------------------------------------

  #toggleOverview() {
    this.rail.hidden = !this.rail.hidden;
    if (ROOMY.matches) remember("localStorage", OVERVIEW_KEY, this.rail.hidden ? "off" : "on");
    this.#drawOverview();
    announce(this.rail.hidden ? "Overview hidden" : "Overview shown");
  }

  /** Draws what the session took, beside the conversation where there is room. */
  #drawOverview() {
    this.element.toggleAttribute("data-overview", !this.rail.hidden);
    if (this.rail.hidden || !this.facts) return;
    const top = this.rail.scrollTop;
    setChildren(this.rail, iconButton("close", "Hide the overview", () => this.#toggleOverview()), overview({ facts: this.facts, path: this.tree.path(this.#head()), jump: (turn) => changeQuery({ turn }) }));
    this.rail.scrollTop = top;
  }

  #head() {
    const head = this.route.query.head;
    if (head && this.tree.turns.has(head)) return this.tree.leaf(head);
    const turn = this.route.query.turn ?? this.route.query.request;
    const newest = this.tree.newest();
    if (turn && this.tree.turns.has(turn) && !this.tree.path(newest).some((one) => one.id === turn)) return this.tree.leaf(turn);
    return newest;
  }

  update(route, { first = false, changed = null } = {}) {
    const before = this.route;
    this.route = route;
    if (!this.facts) return;
    setHighlight(route.query.q ?? "");
    this.heading.show({ facts: this.facts, tree: this.tree, head: this.#head(), route, live: Boolean(changed) });
    this.#drawOverview();
    const { turn, request } = route.query;
    const opened = request !== (this.request.turn ?? undefined);
    this.element.toggleAttribute("data-request", Boolean(request));
    this.main.inert = Boolean(request) && NARROW.matches;
    if (opened || changed?.has(request)) this.request.show(request ?? null, { focus: !first && !changed });
    if (route.path[2] === "compare") this.#compare(route.query);
    else {
      this.#converse(changed);
      const wanted = turn && (first || turn !== before.query.turn);
      if (wanted) this.conversation.jump(turn);
      else if (first) this.conversation.toEnd();
      else if (opened) this.conversation.keepInSight(request ?? before.query.request);
    }
  }

  #converse(changed) {
    if (!this.conversation) {
      this.conversation = new Conversation({
        scroller: this.scroller, viewState: this.viewState, tree: this.tree,
        request: (turn) => changeQuery({ request: turn }),
        choose: (turn) => changeQuery({ head: this.tree.leaf(turn), turn }),
        permalink: (turn) => link(["sessions", this.id], { turn, head: this.route.query.head }),
      });
      changed = null;
    }
    const shown = this.#head();
    const same = shown === this.shown || changed;
    if (!this.conversation.element.isConnected) setChildren(this.scroller, forkedFrom(this.forked), this.conversation.element);
    this.conversation.show(shown, same && this.shown ? changed ?? new Set() : null);
    this.shown = shown;
  }

  #compare({ left, right }) {
    this.conversation?.end();
    this.conversation = null;
    this.shown = null;
    const one = this.tree.turns.has(left) ? left : this.#head();
    const other = this.tree.turns.has(right) ? right : otherBranch(this.tree, one) ?? one;
    setChildren(this.scroller, branchComparison(this.tree, this.id, {
      left: one, right: other, viewState: this.viewState, request: (turn) => changeQuery({ request: turn }),
    }));
  }

  async #delete() {
    const sure = await confirmed({ title: "Delete this session?", action: "Delete",
      text: "All its turns and thoughts will be gone for good. A conversation that is under way goes on without its earlier thoughts." });
    if (!sure) return;
    try {
      await api.deleteSession(this.id);
      announce("Session deleted");
      navigate(["sessions"]);
    } catch (error) {
      if (!this.handleError(error)) setChildren(this.scroller, errorState(error, () => this.load(this.route)));
    }
  }

  // -- keys --------------------------------------------------------------------------------------

  #closeRequest() {
    const turn = this.request.turn;
    changeQuery({ request: undefined });
    this.conversation?.virtualList.node(turn)?.querySelector("[data-focus=request]")?.focus();
  }

  step(by) {
    this.conversation?.step(by);
  }

  /** Opens the previous or next branch of the current turn, or of the last fork above it. */
  branch(by) {
    const turn = this.conversation?.current();
    const fork = turn && this.tree.path(turn.id).findLast((one) => this.tree.siblings(one.id).length > 1);
    if (!fork) return announce("There is no other branch here");
    const siblings = this.tree.siblings(fork.id);
    const next = siblings[(siblings.indexOf(fork.id) + by + siblings.length) % siblings.length];
    changeQuery({ head: this.tree.leaf(next), turn: next });
  }

  /** Unfolds or folds the thoughts of the current turn. */
  thoughts() {
    const turn = this.conversation?.current();
    this.conversation?.virtualList.node(turn?.id)?.querySelectorAll(".thought-head").forEach((one) => one.click());
  }

  look() {
    const turn = this.conversation?.current();
    if (turn) changeQuery({ request: turn.id });
  }

  /** Closes what lies over the conversation; false when nothing does. */
  escape() {
    if (this.request.turn) this.#closeRequest();
    else if (!this.rail.hidden && !ROOMY.matches) this.#toggleOverview();
    else return false;
    return true;
  }
}

function nullIfMissing(error) {
  if (error instanceof api.NotFound) return null;
  throw error;
}

// -- the heading ----------------------------------------------------------------------------------

class Heading {
  constructor({ id, remove, save, toggle }) {
    Object.assign(this, { id, remove, save, toggle });
    this.element = h("header.session-head");
  }

  /** Draws the heading of a session that cannot be shown. */
  fail(route) {
    setChildren(this.element, h("div.session-title", {}, this.#back(route), h("h1", {}, "Session")));
  }

  /** Draws what is new and keeps the focus; an open select is not disturbed by live updates. */
  show({ facts, tree, head, route, live }) {
    document.title = `${visibleText(facts.title || "Untitled")} · Thoughtline`;
    const shown = [this.#title(facts, route), this.#facts(facts), this.#aside(tree), route.path[2] !== "compare" && this.#branches(tree, head)].filter(Boolean);
    const same = shown.length === this.element.children.length && shown.every((part, n) => part.isEqualNode(this.element.children[n]));
    const focused = this.element.contains(document.activeElement) && document.activeElement;
    if (same || (live && focused?.tagName === "SELECT")) return;
    setChildren(this.element, shown);
    if (focused) this.element.querySelector(`[data-focus="${focused.dataset.focus}"]`)?.focus();
  }

  #back({ path, query }) {
    const { q, provider, model, tenant, has, status: state } = query;
    const to = path[2] ? link(["sessions", this.id]) : link(["sessions"], { q, provider, model, tenant, has, status: state });
    return h(path[2] ? "a.icon-button.back.always" : "a.icon-button.back", {
      href: to, "aria-label": path[2] ? "Back to the conversation" : "Back to the list", title: "Back", "data-focus": "back",
    }, icon("back"));
  }

  #title(facts, route) {
    return h("div.session-title", {}, this.#back(route), h("h1", { title: facts.title }, facts.title || "Untitled"), statusBadge(facts.status),
      iconButton("overview", "Show or hide the overview", this.toggle, { "data-focus": "overview" }),
      iconButton("download", "Export this session", this.save, { "data-focus": "export" }),
      copyButton(() => this.id, "Copy the session's id", { "data-focus": "copy" }),
      iconButton("bin", "Delete this session", this.remove, { "data-focus": "delete" }));
  }

  #facts(facts) {
    const began = ago(facts.created);
    return h("div.session-facts", {},
      h("span", { title: facts.models.join(", ") }, facts.models.join(", ") || "no model"),
      h("span", { title: facts.providers.join(", ") }, facts.providers.join(", ")),
      h("span", {}, plural(facts.turns, "turn")), h("span", {}, plural(facts.thoughts, "thought")),
      facts.spending.input > 0 && h("span", { title: `${count(facts.spending.input)} tokens in, ${count(facts.spending.output)} out` }, `${compact(facts.spending.input)} in, ${compact(facts.spending.output)} out`),
      facts.spending.cost !== null && h("span", { title: "By the table of public prices, or your own" }, moneyOf(facts.spending)),
      h("span", { title: dateTime(facts.created) }, `began ${began === "now" ? "just now" : `${began} ago`}`),
      facts.tenant && severalTenants() && h("span", { title: `Tenant ${facts.tenant}` }, `tenant ${shortId(facts.tenant)}`),
      h("code", { title: this.id }, shortId(this.id)));
  }

  /** What the client asked beside the conversation. */
  #aside(tree) {
    const aside = tree.sideRequests();
    return aside.length > 0 && h("p.fine", {}, "Beside the conversation, the client asked for a title or the like: ",
      aside.map((turn, n) => [n ? ", " : "", h("a", { href: link(["sessions", this.id], { turn }), "data-focus": `aside-${n}` }, `request ${n + 1}`)]));
  }

  #branches(tree, head) {
    const choice = branchPicker(tree, head, { label: "Branch", id: "pick-branch", choose: (one) => changeQuery({ head: one, turn: undefined }) });
    return choice && h("div.session-branches", {}, choice,
      h("a.secondary.small", { href: link(["sessions", this.id, "compare"], { left: head, right: otherBranch(tree, head) }), "data-focus": "compare" },
        icon("compare"), "Compare"));
  }
}

/** A link to the session that this one was forked from. */
function forkedFrom(forked) {
  return forked && h("p.forked", {}, icon("branch"), "Forked from ",
    h("a", { href: link(["sessions", forked.session], { turn: forked.turn }) }, shortId(forked.session)));
}
