// The list of sessions: live, searchable, and as long as it likes.
import * as api from "./api.js";
import { calmly, h, icon, put } from "./dom.js";
import { feed } from "./feed.js";
import { Filters, NAMES } from "./filters.js";
import { ago, brief, count, moment, plural } from "./format.js";
import { go, link } from "./router.js";
import { empty, loading, noSessions, trouble } from "./states.js";
import { dot } from "./status.js";
import { Windowed } from "./windowing.js";

const PAGE = 100;
const FRESH = 25; // how many are asked for when something has happened: it is on top

export class SessionList {
  #rows = [];
  #cursor = null;
  #busy = null;
  #asked = null; // filters of what is shown
  #selected = "";

  constructor({ problem }) {
    this.problem = problem;
    this.filters = new Filters();
    this.list = h("ul.session-list", { "aria-label": "Sessions" });
    this.note = h("div.list-note");
    this.scroller = h("div.list-scroll", { tabindex: "-1" }, this.list, this.note);
    this.count = h("span.fine", { role: "status" });
    this.element = h("section.list-pane", { "aria-label": "List of sessions" }, h("h1.unseen", {}, "Sessions"), this.filters.element, this.scroller,
      h("footer.list-foot", {}, this.count));
    this.windowed = new Windowed({
      scroller: this.scroller, list: this.list, guess: 64, key: (row) => row.id, render: (row) => this.#row(row),
      onrange: (first, last) => last > this.#rows.length - 40 && this.#more(),
    });
    this.soon = calmly(1200, () => this.#refresh());
    feed.addEventListener("event", this.soon);
    feed.addEventListener("reset", this.soon);
    feed.addEventListener("live", (this.onlive = ({ detail }) => detail.kind !== "text" && this.soon()));
    this.clock = setInterval(() => this.#ages(), 30000);
  }

  end() {
    clearInterval(this.clock);
    this.soon.cancel();
    this.windowed.end();
    feed.removeEventListener("event", this.soon);
    feed.removeEventListener("reset", this.soon);
    feed.removeEventListener("live", this.onlive);
  }

  // -- what is shown -----------------------------------------------------------------------------

  update(route) {
    this.route = route;
    const asked = Object.fromEntries(NAMES.map((name) => [name, route.query[name] ?? ""]));
    this.filters.update(route.query);
    this.#select(route.path[1] ?? "");
    if (JSON.stringify(asked) !== JSON.stringify(this.#asked)) {
      this.#asked = asked;
      this.reload();
    }
  }

  async reload() {
    if (!this.#rows.length) put(this.note, loading());
    await this.#fetch({ ...this.#asked, limit: PAGE }, (page) => {
      this.#rows = page.sessions;
      this.#cursor = page.nextCursor;
      this.scroller.scrollTop = 0;
      this.#draw();
    });
  }

  /** What is new, put on top of what is there. */
  #refresh() {
    if (document.hidden || !this.#asked) return;
    this.#fetch({ ...this.#asked, limit: FRESH }, (page) => {
      const fresh = new Set(page.sessions.map((row) => row.id));
      const whole = !page.nextCursor;
      const bound = page.sessions.at(-1)?.touched ?? Infinity;
      const rest = whole ? [] : this.#rows.filter((row) => !fresh.has(row.id) && row.touched <= bound);
      const before = new Map(this.#rows.map((row) => [row.id, JSON.stringify(row)]));
      this.#rows = [...page.sessions, ...rest];
      if (whole || this.#cursor === null && rest.length === 0) this.#cursor = page.nextCursor;
      this.#draw((row) => before.get(row.id) !== JSON.stringify(row));
    });
  }

  #more() {
    if (!this.#cursor || this.#busy) return;
    this.#fetch({ ...this.#asked, limit: PAGE * 2, cursor: this.#cursor }, (page) => {
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
      if (!this.problem(error) && !this.#rows.length) put(this.note, trouble(error, () => this.reload()));
      return;
    }
    if (mine.signal.aborted) return;
    this.#busy = null;
    this.filters.learn(page.sessions);
    this.filters.update(this.route.query);
    done(page);
  }

  #draw(changed) {
    this.windowed.set(this.#rows, changed);
    const filtered = Object.values(this.#asked).some(Boolean);
    put(this.note, this.#rows.length ? null : this.#cursor ? loading("Searching…") : filtered
      ? empty({ drawn: "search", title: "Nothing matches", text: "No session has all of this.",
        more: [h("button.secondary", { type: "button", onclick: () => go(this.route.path) }, "Clear the search")] })
      : [h("p.fine.pad.wide-only", {}, "No sessions yet"), h("div.narrow-only", {}, noSessions())]);
    this.count.textContent = this.#rows.length ? `${count(this.#rows.length)}${this.#cursor ? "+" : ""} ${this.#rows.length === 1 ? "session" : "sessions"}` : "";
    this.ondraw?.({ begun: this.#rows.length > 0 || filtered || this.#cursor !== null });
  }

  // -- rows --------------------------------------------------------------------------------------

  #row(row) {
    const { q, provider, model, tenant, status } = this.route.query;
    const current = row.id === this.#selected;
    return h("li", {},
      h("a.session-row", {
        href: link(["sessions", row.id], { q, provider, model, tenant, status }), "data-focus": "row", "aria-current": current ? "true" : null,
      },
      h("span.row-top", {}, dot(row.status), h("span.row-title", {}, row.title || "Untitled"),
        h("time.row-time", { "data-at": row.touched, title: moment(row.touched) }, ago(row.touched))),
      h("span.row-facts", {},
        h("span.row-model", {}, `${row.models.join(", ") || brief(row.id)} · ${plural(row.turns, "turn")}`), tallies(row))));
  }

  #select(id) {
    const before = this.#selected;
    this.#selected = id;
    for (const key of [before, id]) {
      this.windowed.node(key)?.firstChild.toggleAttribute("aria-current", false);
      if (key === id) this.windowed.node(key)?.firstChild.setAttribute("aria-current", "true");
    }
  }

  #ages() {
    this.list.querySelectorAll("time").forEach((time) => (time.textContent = ago(Number(time.dataset.at))));
  }

  // -- keys --------------------------------------------------------------------------------------

  step(by) {
    const held = document.activeElement?.closest?.(".session-list > li")?.dataset.key ?? this.#selected;
    const from = this.windowed.indexOf(held);
    const index = Math.min(this.#rows.length - 1, Math.max(0, from + by));
    this.windowed.reveal(index)?.firstChild.focus();
  }

  focus() {
    this.windowed.node(this.#selected)?.firstChild.focus();
  }
}

function tallies(row) {
  return [["restored", "put back", "returned"], ["missed", "missing", "missed"], ["dropped", "dropped", "dropped"]]
    .filter(([name]) => row[name])
    .map(([name, label, drawn]) => h(`span.mini.${name}`, { title: `${row[name]} ${label}` },
      icon(drawn, 12), count(row[name]), h("span.unseen", {}, ` ${label}`)));
}
