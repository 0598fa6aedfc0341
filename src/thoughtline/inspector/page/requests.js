// The requests view: what happens at the gateway now, today's numbers, and every request with what became of it.
import * as api from "./api.js";
import { serverNow, tickWhileConnected } from "./clock.js";
import { h, icon, iconButton, setChildren, throttled, withCode } from "./dom.js";
import { feed } from "./feed.js";
import { decisionSummary } from "./request.js";
import { changeQuery, link } from "./router.js";
import { learnTenants, severalTenants } from "./tenants.js";
import { costNote, isOld, timelineBar, timelineWords } from "./timeline.js";
import { VirtualList } from "./virtual-list.js";
import { copyButton, emptyState, errorState, loading, noSessions, statusDot, tile } from "./widgets.js";
import { OUTCOMES, ago, compact, count, dateTime, dialectWords, elapsed, endingWords, exactly, moneyOf, percent, shortId } from "./words.js";

const PAGE = 100;
const REFRESH_LIMIT = 50;
const FILTERS = [["", "All"], ["failed", "Failed"], ["running", "Running"], ["missed", "Missed"], ["tied", "Tied"], ["dropped", "Dropped"], ["thinking_off", "Thinking off"], ["passed", "Passed through"]];

export class RequestsView {
  #rows = [];
  #cursor = null;
  #complete = true;
  #busy = null;
  #query = null;
  #outdated = false; // rows may be gone, also those that a refresh does not look at
  #open = "";

  constructor(root, { handleError }) {
    this.handleError = handleError;
    this.today = h("ul.tiles.today", { "aria-label": "Today" });
    this.segments = h("div.segments.wrap", { role: "group", "aria-label": "Which requests" });
    this.list = h("ul.request-list", { "aria-label": "Requests, the newest first" });
    this.note = h("div.list-note");
    this.head = h("div.requests-head", {},
      h("header.page-head", {}, h("h1", { tabindex: "-1" }, "Requests")), this.today, h("div.toolbar", {}, this.segments));
    this.columns = h("div.request-columns", { "aria-hidden": "true" }, ["", "Request", "Earlier thoughts", "Tokens", "Cost", "Took", "When"].map((name) => h("span", {}, name)));
    this.scroller = h("div.requests-scroll", { tabindex: "-1" }, this.head, this.columns, this.list, this.note);
    this.panel = new DetailPanel({ close: () => this.#close() });
    this.element = h("div.requests", {}, this.scroller, this.panel.element);
    setChildren(root, this.element);
    this.virtualList = new VirtualList({
      scroller: this.scroller, list: this.list, estimatedHeight: 58, key: (row) => row.id, render: (row) => this.#row(row),
      onrange: (first, last) => last > this.#rows.length - 30 && this.#more(),
    });
    this.scheduleRefresh = throttled(1000, () => !document.hidden && this.#refresh());
    this.onlive = ({ detail }) => detail.kind !== "text" && this.scheduleRefresh();
    feed.addEventListener("event", this.scheduleRefresh);
    feed.addEventListener("outdated", (this.onoutdated = ({ detail }) => {
      this.#outdated ||= detail.kind !== "forget";
      this.scheduleRefresh();
    }));
    feed.addEventListener("live", this.onlive);
    this.clock = setInterval(() => this.#tick(), 30000);
    this.poll = setInterval(() => feed.state === "live" && this.scheduleRefresh(), 10000); // what is refused at the door is in no feed
  }

  title = () => "Requests";
  search = () => this.segments.querySelector("button")?.focus();

  end() {
    clearInterval(this.clock);
    clearInterval(this.poll);
    this.scheduleRefresh.cancel();
    this.virtualList.end();
    feed.removeEventListener("event", this.scheduleRefresh);
    feed.removeEventListener("outdated", this.onoutdated);
    feed.removeEventListener("live", this.onlive);
  }

  update({ query }) {
    this.query = query;
    setChildren(this.segments, FILTERS.map(([value, label]) => h("button", {
      type: "button", "aria-pressed": String(value === (query.has ?? "")), onclick: () => changeQuery({ has: value, open: "" }, { replace: true }),
    }, label)));
    const wanted = JSON.stringify([query.has, query.provider, query.model]);
    const before = this.#open;
    this.#open = query.open ?? "";
    for (const id of [before, this.#open]) this.virtualList.node(id)?.firstChild.toggleAttribute("aria-current", id === this.#open && Boolean(id));
    if (wanted !== this.#query) {
      this.#query = wanted;
      this.#load();
    } else this.#showOpen(before !== this.#open);
  }

  reload() {
    this.#refresh();
  }

  // -- data --------------------------------------------------------------------------------------

  #params = (more) => ({ has: this.query.has, provider: this.query.provider, model: this.query.model, ...more });

  async #load() {
    if (!this.#rows.length) setChildren(this.note, loading());
    this.#numbers();
    await this.#fetch({ limit: PAGE }, (page) => {
      this.#outdated = false;
      this.#rows = page.requests;
      this.#cursor = page.nextCursor;
      this.#draw();
      this.#showOpen(false);
    });
  }

  #refresh() {
    if (!this.query) return;
    if (this.#outdated) return void this.#load();
    this.#numbers();
    this.#fetch({ limit: REFRESH_LIMIT }, (page) => {
      const fresh = new Set(page.requests.map((row) => row.id));
      const bound = page.nextCursor ? page.requests.at(-1).at : -Infinity;
      const before = new Map(this.#rows.map((row) => [row.id, JSON.stringify(row)]));
      const rest = this.#rows.filter((row) => !fresh.has(row.id) && (row.at < bound || (row.outcome !== "running" && !row.turn)));
      this.#rows = [...page.requests, ...rest].sort((a, b) => b.at - a.at);
      if (!page.nextCursor) this.#cursor = null;
      else this.#cursor ??= page.nextCursor;
      this.#draw((row) => before.get(row.id) !== JSON.stringify(row));
      this.#showOpen(false);
    });
  }

  #more() {
    if (!this.#cursor || this.#busy) return;
    this.#fetch({ limit: PAGE, cursor: this.#cursor }, (page) => {
      const known = new Set(this.#rows.map((row) => row.id));
      this.#rows = [...this.#rows, ...page.requests.filter((row) => !known.has(row.id))];
      this.#cursor = page.nextCursor;
      this.#draw(() => false);
    });
  }

  async #fetch(more, done) {
    this.#busy?.abort();
    const mine = (this.#busy = new AbortController());
    try {
      const page = await api.requests(this.#params(more), { signal: mine.signal });
      if (mine.signal.aborted) return;
      this.#busy = null;
      this.#complete = page.complete;
      learnTenants(page.requests.filter((row) => row.session)); // who was refused at the door, nobody knows
      done(page);
    } catch (error) {
      if (mine.signal.aborted) return;
      this.#busy = null;
      if (!this.handleError(error) && !this.#rows.length) setChildren(this.note, errorState(error, () => this.#load()));
    }
  }

  async #numbers() {
    try {
      this.#drawNumbers(await api.usage({ since: Math.floor(new Date().setHours(0, 0, 0, 0) / 1000) }));
    } catch {
      // The list says what is wrong.
    }
  }

  // -- drawing -----------------------------------------------------------------------------------

  #drawNumbers({ total, failed, running, thoughts, pricesDate }) {
    const found = thoughts.restored + thoughts.replaced + thoughts.exact;
    const needed = found + thoughts.missed + thoughts.tied;
    setChildren(this.today,
      tile(count(running), "running now", running ? "running" : ""),
      tile(count(total.turns), "turns today"),
      h("li.tile", { class: failed ? "tile missed" : "tile" }, h("strong", {}, count(failed)), h("span", {}, "failed today")),
      tile(compact(total.input), total.input ? `tokens in, ${percent(total.cached / total.input)} cached` : "tokens in"),
      tile(compact(total.output), total.reasoning ? `tokens out, ${compact(total.reasoning)} thought` : "tokens out"),
      h("li.tile", { title: `${costNote(total)}${total.cost === null ? "" : `, of ${pricesDate}${isOld(pricesDate) ? ", which may be out of date: set yours under [prices]" : ""}`}` }, h("strong", {}, moneyOf(total)), h("span", {}, total.cost === null ? "cost: no price is known" : total.unpriced ? "cost, some turns without a price" : "cost today")),
      tile(count(thoughts.restored), needed ? `thoughts put back, ${percent(found / needed)} found` : "thoughts put back", "restored"));
  }

  #draw(changed) {
    this.virtualList.set(this.#rows, changed);
    this.columns.hidden = !this.#rows.length;
    const filtered = this.query.has || this.query.provider || this.query.model;
    setChildren(this.note, this.#rows.length
      ? !this.#cursor && !this.#complete && h("p.fine.pad", {}, "Earlier requests are in their sessions.")
      : filtered ? emptyState({ iconName: "search", title: "None of these", text: "No request is like that.", more: [h("button.secondary", { type: "button", onclick: () => changeQuery({ has: "", provider: "", model: "" }, { replace: true }) }, "Show all")] })
        : noSessions());
  }

  #row(row) {
    const failed = row.outcome === "refused" || row.outcome === "failed";
    const used = row.usage;
    return h("li", {}, h("a.request-row", {
      href: link(["requests"], { ...this.query, open: row.id }), "data-focus": "row", "data-outcome": row.outcome, "aria-current": row.id === this.#open ? "true" : null,
    },
    h("span.request-status", {}, statusDot(row.outcome), h("span.status-code", { "aria-hidden": row.status ? null : "true" }, row.status ?? "…")),
    h("span.request-what", {},
      h("span.request-title", {}, (failed && endingWords(row.reason)) || row.title || row.path || shortId(row.session ?? row.id)),
      h("span.request-from", {}, [row.model || null, row.upstream || row.provider || null, row.path || dialectWords(row.dialect), row.calls.length && `calls ${row.calls.slice(0, 3).join(", ")}`].filter(Boolean).join(" · "))),
    h("span.request-thoughts", {}, decisionSummary(asCounts(row)) ?? ""),
    h("span.request-tokens", {}, used?.input ? [`${compact(used.input)} → ${compact(used.output)}`, h("span.unseen", {}, " tokens")] : ""),
    h("span.request-cost", {}, row.cost !== null && row.cost !== undefined ? moneyOf(row) : ""),
    this.#took(row),
    h("time.request-when", { "data-at": row.at, title: dateTime(row.at) }, ago(row.at))));
  }

  /** How long it took, or a timer; one that runs elsewhere may be dead. */
  #took(row) {
    const element = h("span.request-took", {}, took(row));
    if (row.outcome === "running") tickWhileConnected(element, (gone) => (element.textContent = gone ? "?" : elapsed(row.at, serverNow())));
    return element;
  }

  #tick() {
    this.list.querySelectorAll("time").forEach((time) => (time.textContent = ago(Number(time.dataset.at))));
  }

  #showOpen(focus) {
    const row = this.#rows.find((one) => one.id === this.#open);
    this.element.toggleAttribute("data-detail", Boolean(this.#open));
    this.panel.show(row, this.#open, { focus });
  }

  #close() {
    const id = this.#open;
    changeQuery({ open: "" });
    this.virtualList.node(id)?.firstChild.focus();
  }

  // -- keys --------------------------------------------------------------------------------------

  step(by) {
    const focused = document.activeElement?.closest?.(".request-list > li")?.dataset.key ?? this.#open;
    const from = this.virtualList.indexOf(focused);
    this.virtualList.reveal(Math.min(this.#rows.length - 1, Math.max(0, from + by)))?.firstChild.focus();
  }

  escape() {
    if (this.#open) this.#close();
  }
}

const took = (row) => (row.seconds === null || row.seconds === undefined ? "" : row.turn && row.outcome !== "refused" ? elapsed(0, row.seconds) : exactly(row.seconds));

/** Counts by the names of the log, from those by the words of the replay header. */
function asCounts({ replay, thinkingOff }) {
  return { ...replay, replaced: replay.corrected ?? 0, thinkingOff };
}

// -- one request ----------------------------------------------------------------------------------

class DetailPanel {
  constructor({ close }) {
    this.shown = "";
    this.drawn = "";
    this.title = h("h2", { id: "detail-title", tabindex: "-1" }, "Request");
    this.body = h("div.panel-body", { tabindex: "0", role: "group", "aria-label": "Details of the request" });
    this.element = h("aside.panel", { hidden: true, "aria-labelledby": "detail-title" },
      h("header.panel-head", {}, this.title, iconButton("close", "Close (Escape)", close)), this.body);
  }

  show(row, id, { focus }) {
    this.element.hidden = !id;
    if (!id) {
      this.shown = this.drawn = "";
      return;
    }
    const drawn = JSON.stringify(row ?? null);
    if (drawn !== this.drawn || id !== this.shown) {
      this.drawn = drawn;
      this.shown = id;
      if (row) this.#draw(row);
      else setChildren(this.body, h("p.fine", {}, "This request is not in the list: it is older, or the filter hides it."));
    }
    if (focus) this.title.focus();
  }

  #draw(row) {
    const failed = row.outcome === "refused" || row.outcome === "failed";
    const timeline = h("div");
    const here = row.session && row.turn && row.outcome !== "refused";
    const changes = decisionSummary(asCounts(row));
    setChildren(this.title, `${row.status ?? "…"} ${OUTCOMES[row.outcome] ?? row.outcome}`);
    setChildren(this.body,
      row.reason && h("section.words", { class: failed ? "words failed" : "words" }, h("h3", {}, row.code ? "The gateway says" : row.outcome === "refused" ? "The provider says" : "Why it ended"),
        h("p", {}, endingWords(row.reason)), copyButton(() => row.reason, "Copy these words")),
      row.advice && h("section.advice", {}, h("h3", {}, "What to do"), h("p", {}, withCode(row.advice))),
      timeline,
      h("dl.facts-list", {},
        fact("When", dateTime(row.at)),
        row.seconds !== null && fact("Took", took(row)),
        (row.method || row.path) && fact("Path", h("code", {}, [row.method, row.path].filter(Boolean).join(" "))),
        (row.upstream || row.provider) && fact("To", [row.upstream, row.provider !== row.upstream && row.provider].filter(Boolean).join(", ")),
        row.model && fact("Model", row.asked ? `${row.model}, asked for as ${row.asked}` : row.model),
        row.dialect && fact("API", row.client ? `${dialectWords(row.dialect)}, translated from ${dialectWords(row.client)}` : dialectWords(row.dialect)),
        row.code && fact("Code", h("code", {}, row.code)),
        row.usage?.input && fact("Tokens", `${count(row.usage.input)} in (${count(row.usage.cached)} cached), ${count(row.usage.output)} out (${count(row.usage.reasoning)} thought)`),
        row.usage?.input && fact("Cost", row.cost === null ? "no price is known for this model" : moneyOf(row)),
        severalTenants() && fact("Tenant", row.tenant), fact("Id", h("code", {}, row.id))),
      h("section.changed", {}, h("h3", {}, "What Thoughtline changed"),
        h("p", {}, changes ?? (row.outcome === "passed" ? "Nothing: it passed through as it came." : "Nothing about its thoughts.")),
        row.corrected && h("p.fine", {}, "It was sent once more, without what the provider did not accept."),
        row.thinkingOff && h("p.fine", {}, "Thinking was switched off for it: the provider demands a thought that is lost.")),
      row.session && h("a.secondary", { href: link(["sessions", row.session], here ? { turn: row.turn, request: row.turn } : { turn: row.turn ?? "" }) }, icon("sessions"),
        here ? "Open it in its conversation" : "Open the conversation that it was part of"));
    if (here && row.outcome !== "running") this.#timeline(row, timeline);
  }

  async #timeline(row, place) {
    const answer = await api.turn(row.session, row.turn).catch(() => null);
    if (!answer || this.shown !== row.id || !answer.turn.timeline.length) return;
    setChildren(place, h("section.turn-time", {}, h("h3", {}, "Where the time went"), timelineBar(answer.turn), h("p.fine", {}, timelineWords(answer.turn))));
  }
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value || "–"));
}
