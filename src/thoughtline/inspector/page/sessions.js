// The sessions view: a live list of any length, with a search field and filters, and beside it the
// session that is open.
import * as api from "./api.js";
import { h, icon, setChildren, throttled } from "./dom.js";
import { feed } from "./feed.js";
import { changeQuery, link, navigate } from "./router.js";
import { SessionPane } from "./session.js";
import { learnTenants } from "./tenants.js";
import { VirtualList } from "./virtual-list.js";
import { emptyState, errorState, loading, noSessions, statusDot } from "./widgets.js";
import { STATUSES, ago, count, dateTime, plural, shortId, statusWords } from "./words.js";

export class SessionsView {
  #pane = null;

  constructor(root, { handleError }) {
    this.handleError = handleError;
    this.list = new SessionList({ handleError });
    this.detail = h("div.detail");
    this.element = h("div.split", {}, this.list.element, this.detail);
    this.list.ondraw = ({ begun }) => !this.#pane && this.#showNothing(begun);
    setChildren(root, this.element);
  }

  title() {
    return this.#pane?.facts?.title || "Sessions";
  }

  update(route) {
    this.route = route;
    const id = route.path[1] ?? "";
    this.element.toggleAttribute("data-detail", Boolean(id));
    const left = !id && this.#pane && !this.list.element.contains(document.activeElement);
    if (id !== (this.#pane?.id ?? "")) {
      this.#pane?.end();
      this.#pane = id ? new SessionPane(id, { handleError: this.handleError }) : null;
      if (this.#pane) {
        setChildren(this.detail, this.#pane.element);
        this.#pane.load(route);
      } else {
        this.#showNothing(true);
      }
    } else {
      this.#pane?.update(route);
    }
    if (left) this.list.focus(); // before the list forgets which session was open
    this.list.update(route);
  }

  #showNothing(begun) {
    setChildren(this.detail, begun ? emptyState({ iconName: "sessions", title: "Choose a session",
      text: "Its turns, its branches, and where each of its thoughts went." }) : noSessions());
  }

  /** Fetches anew after a pause or a lost connection. */
  reload() {
    this.list.scheduleRefresh();
    this.#pane?.resume();
  }

  end() {
    this.list.end();
    this.#pane?.end();
  }

  // -- keys --------------------------------------------------------------------------------------

  #focusInside() {
    return this.#pane && this.detail.contains(document.activeElement);
  }

  step(by) {
    if (this.#focusInside()) this.#pane.step(by);
    else this.list.step(by);
  }

  branch = (by) => this.#pane?.branch(by);
  thoughts = () => this.#pane?.thoughts();
  look = () => this.#pane?.look();
  search = () => this.list.filters.search.focus();

  enter() {
    this.#pane?.conversation?.step(1);
  }

  escape() {
    if (this.#pane?.escape()) return;
    const { q, provider, model, tenant, has, status } = this.route.query;
    if (this.route.path[2]) navigate(["sessions", this.route.path[1]]);
    else if (this.#focusInside()) {
      if (getComputedStyle(this.list.element).display === "none") navigate(["sessions"], { q, provider, model, tenant, has, status });
      else this.list.focus();
    }
  }
}

// -- the list -------------------------------------------------------------------------------------

const PAGE = 100;
const REFRESH_LIMIT = 25; // sessions that are fetched when something has happened: it is on top

class SessionList {
  #rows = [];
  #cursor = null;
  #busy = null;
  #query = null; // the filters of what is shown
  #outdated = false; // rows may be gone, also those that a refresh does not look at
  #selected = "";

  constructor({ handleError }) {
    this.handleError = handleError;
    this.filters = new Filters();
    this.list = h("ul.session-list", { "aria-label": "Sessions" });
    this.note = h("div.list-note");
    this.scroller = h("div.list-scroll", { tabindex: "-1" }, this.list, this.note);
    this.count = h("span.fine", { role: "status" });
    this.element = h("section.list-pane", { "aria-label": "List of sessions" }, h("h1.unseen", {}, "Sessions"), this.filters.element, this.scroller,
      h("footer.list-foot", {}, this.count));
    this.virtualList = new VirtualList({
      scroller: this.scroller, list: this.list, estimatedHeight: 64, key: (row) => row.id, render: (row) => this.#row(row),
      onrange: (first, last) => last > this.#rows.length - 40 && this.#more(),
    });
    this.scheduleRefresh = throttled(1200, () => this.#refresh());
    feed.addEventListener("event", this.scheduleRefresh);
    feed.addEventListener("outdated", (this.onoutdated = ({ detail }) => {
      this.#outdated ||= detail.kind !== "forget";
      this.scheduleRefresh();
    }));
    feed.addEventListener("live", (this.onlive = ({ detail }) => detail.kind !== "text" && this.scheduleRefresh()));
    this.clock = setInterval(() => this.#ages(), 30000);
  }

  end() {
    clearInterval(this.clock);
    this.scheduleRefresh.cancel();
    this.virtualList.end();
    feed.removeEventListener("event", this.scheduleRefresh);
    feed.removeEventListener("outdated", this.onoutdated);
    feed.removeEventListener("live", this.onlive);
  }

  // -- what is shown -----------------------------------------------------------------------------

  update(route) {
    this.route = route;
    const wanted = Object.fromEntries(FILTER_NAMES.map((name) => [name, route.query[name] ?? ""]));
    this.filters.update(route.query);
    this.#select(route.path[1] ?? "");
    if (JSON.stringify(wanted) !== JSON.stringify(this.#query)) {
      this.#query = wanted;
      this.#load({ top: true });
    }
  }

  /** Fetches the first page, and nothing that is not there any more is left. */
  async #load({ top = false } = {}) {
    if (!this.#rows.length) setChildren(this.note, loading());
    await this.#fetch({ ...this.#query, limit: PAGE }, (page) => {
      this.#rows = page.sessions;
      this.#cursor = page.nextCursor;
      this.#outdated = false;
      if (top) this.scroller.scrollTop = 0;
      this.#draw();
    });
  }

  /** Fetches what is new and puts it on top. */
  #refresh() {
    if (document.hidden || !this.#query) return;
    if (this.#outdated) return void this.#load();
    this.#fetch({ ...this.#query, limit: REFRESH_LIMIT }, (page) => {
      const fresh = new Set(page.sessions.map((row) => row.id));
      const complete = !page.nextCursor;
      const bound = page.sessions.at(-1)?.touched ?? Infinity;
      const rest = complete ? [] : this.#rows.filter((row) => !fresh.has(row.id) && row.touched <= bound);
      const before = new Map(this.#rows.map((row) => [row.id, JSON.stringify(row)]));
      this.#rows = [...page.sessions, ...rest];
      if (complete || this.#cursor === null && rest.length === 0) this.#cursor = page.nextCursor;
      this.#draw((row) => before.get(row.id) !== JSON.stringify(row));
    });
  }

  #more() {
    if (!this.#cursor || this.#busy) return;
    this.#fetch({ ...this.#query, limit: PAGE * 2, cursor: this.#cursor }, (page) => {
      const known = new Set(this.#rows.map((row) => row.id));
      this.#rows = [...this.#rows, ...page.sessions.filter((row) => !known.has(row.id))];
      this.#cursor = page.nextCursor;
      this.#draw(() => false);
    });
  }

  async #fetch(params, done) {
    this.#busy?.abort();
    const mine = (this.#busy = new AbortController());
    let page;
    try {
      page = await api.sessions(params, { signal: mine.signal });
    } catch (error) {
      if (mine.signal.aborted) return;
      this.#busy = null;
      if (!this.handleError(error) && !this.#rows.length) setChildren(this.note, errorState(error, () => this.#load()));
      return;
    }
    if (mine.signal.aborted) return;
    this.#busy = null;
    this.filters.learn(page.sessions);
    this.filters.update(this.route.query);
    done(page);
  }

  #draw(changed) {
    this.virtualList.set(this.#rows, changed);
    const filtered = Object.values(this.#query).some(Boolean);
    setChildren(this.note, this.#rows.length ? null : this.#cursor ? loading("Searching…") : filtered
      ? emptyState({ iconName: "search", title: "Nothing matches", text: "No session has all of this.",
        more: [h("button.secondary", { type: "button", onclick: () => navigate(this.route.path) }, "Clear the search")] })
      : [h("p.fine.pad.wide-only", {}, "No sessions yet"), h("div.narrow-only", {}, noSessions())]);
    this.count.textContent = this.#rows.length ? `${count(this.#rows.length)}${this.#cursor ? "+" : ""} ${this.#rows.length === 1 ? "session" : "sessions"}` : "";
    this.ondraw?.({ begun: this.#rows.length > 0 || filtered || this.#cursor !== null });
  }

  // -- rows --------------------------------------------------------------------------------------

  #row(row) {
    const { q, provider, model, tenant, has, status } = this.route.query;
    const current = row.id === this.#selected;
    return h("li", {},
      h("a.session-row", {
        href: link(["sessions", row.id], { q, provider, model, tenant, has, status, turn: row.snippet?.turn }), "data-focus": "row", "aria-current": current ? "true" : null,
      },
      h("span.row-top", {}, statusDot(row.status), h("span.row-title", {}, row.title || "Untitled"),
        h("time.row-time", { "data-at": row.touched, title: dateTime(row.touched) }, ago(row.touched))),
      h("span.row-facts", {},
        row.damaged && h("span.mini.missed", { title: "Some of what is stored of it cannot be read" }, icon("missed", 12), "damaged"),
        h("span.row-model", {}, `${row.models.join(", ") || shortId(row.id)} · ${plural(row.turns, "turn")}`), tallies(row)),
      row.snippet && h("span.row-snippet", {}, row.snippet.before, h("mark", {}, row.snippet.match), row.snippet.after)));
  }

  #select(id) {
    const before = this.#selected;
    this.#selected = id;
    for (const key of [before, id]) {
      this.virtualList.node(key)?.firstChild.toggleAttribute("aria-current", false);
      if (key === id) this.virtualList.node(key)?.firstChild.setAttribute("aria-current", "true");
    }
  }

  #ages() {
    this.list.querySelectorAll("time").forEach((time) => (time.textContent = ago(Number(time.dataset.at))));
  }

  // -- keys --------------------------------------------------------------------------------------

  step(by) {
    const focused = document.activeElement?.closest?.(".session-list > li")?.dataset.key ?? this.#selected;
    const from = this.virtualList.indexOf(focused);
    const index = Math.min(this.#rows.length - 1, Math.max(0, from + by));
    this.virtualList.reveal(index)?.firstChild.focus();
  }

  /** Puts the focus on the session that is open, wherever it stands by now. */
  focus() {
    const row = this.virtualList.reveal(this.virtualList.indexOf(this.#selected));
    (row?.firstChild ?? this.scroller).focus({ preventScroll: true });
  }
}

function tallies(row) {
  return [["restored", "put back", "returned"], ["missed", "missed", "missed"], ["tied", "tied", "missed"], ["dropped", "dropped", "dropped"], ["thinkingOff", "with thinking off", "missed"]]
    .filter(([name]) => row[name])
    .map(([name, label, iconName]) => h(`span.mini.${name}`, { title: `${row[name]} ${label}` },
      icon(iconName, 12), count(row[name]), h("span.unseen", {}, ` ${label}`)));
}

// -- search and filters ---------------------------------------------------------------------------

const CHOICES = [["status", "Any status"], ["has", "Anything in it"], ["provider", "Any provider"], ["model", "Any model"], ["tenant", "Any tenant"]];
const HAS = { failed: "a failed turn", missed: "missed thoughts", tied: "tied thoughts", dropped: "dropped thoughts", thinking_off: "thinking off" };
const LABELS = { status: statusWords, has: (one) => HAS[one] ?? one };
const FILTER_NAMES = ["q", ...CHOICES.map(([name]) => name)];

class Filters {
  #seen = { status: new Set(Object.keys(STATUSES)), has: new Set(Object.keys(HAS)), provider: new Set(), model: new Set(), tenant: new Set() };
  #selects = {};

  constructor() {
    const typed = throttled(180, () => changeQuery({ q: this.search.value.trim() }, { replace: true }));
    this.search = h("input.field", {
      type: "search", id: "search", placeholder: "Search what was said", autocomplete: "off", spellcheck: "false",
      "aria-keyshortcuts": "/", oninput: typed,
    });
    this.badge = h("span.badge", { hidden: true });
    this.grid = h("div.filter-grid", { id: "filter-grid", hidden: true });
    for (const [name, any] of CHOICES) this.grid.append(this.#select(name, any));
    this.toggle = h("button.secondary.small", {
      type: "button", "aria-expanded": "false", "aria-controls": "filter-grid", onclick: () => this.#open(this.grid.hidden),
    }, "Filter", this.badge);
    this.element = h("search.filters", {},
      h("div.search", {}, icon("search"), h("label.unseen", { for: "search" }, "Search sessions"), this.search, h("kbd", { "aria-hidden": "true" }, "/"), this.toggle),
      this.grid);
  }

  #select(name, any) {
    const select = h("select.field.small", { id: `filter-${name}`, onchange: () => changeQuery({ [name]: select.value }, { replace: true }) },
      h("option", { value: "" }, any));
    this.#selects[name] = select;
    return h("label.choice", { for: select.id }, h("span.unseen", {}, name), select);
  }

  #open(open) {
    this.grid.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  /** Shows the filters that are in the address. */
  update(query) {
    if (document.activeElement !== this.search) this.search.value = query.q ?? "";
    let chosen = 0;
    for (const [name, any] of CHOICES) {
      const value = query[name] ?? "";
      if (value) {
        this.#seen[name].add(value);
        chosen += 1;
      }
      const options = [...this.#seen[name]].filter(Boolean).sort().map((one) => h("option", { value: one }, LABELS[name]?.(one) ?? one));
      setChildren(this.#selects[name], h("option", { value: "" }, any), options);
      this.#selects[name].value = value;
      if (name === "tenant") this.#selects[name].parentNode.hidden = !value && this.#seen.tenant.size < 2;
    }
    this.badge.hidden = !chosen;
    this.badge.textContent = chosen;
    if (chosen) this.#open(true);
  }

  /** Takes the values that can be chosen from sessions that were seen. */
  learn(sessions) {
    learnTenants(sessions);
    for (const session of sessions) {
      session.providers.forEach((one) => this.#seen.provider.add(one));
      session.models.forEach((one) => this.#seen.model.add(one));
      if (session.tenant) this.#seen.tenant.add(session.tenant);
    }
  }
}
