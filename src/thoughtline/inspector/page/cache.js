// The cache view: the thoughts that the gateway can put back, statistics, and how to clear or erase them.
import * as api from "./api.js";
import { announce, h, iconButton, setChildren, throttled } from "./dom.js";
import { feed } from "./feed.js";
import { prose } from "./parts.js";
import { changeQuery, link } from "./router.js";
import { confirmed, emptyState, errorState, loading, tile } from "./widgets.js";
import { ago, compact, count, dateTime, plural, shortId } from "./words.js";

const FILTERS = ["provider", "model", "toolCallId", "tenant"];
const LABELS = { provider: "Provider", model: "Model", toolCallId: "Tool call id", tenant: "Tenant" };
const COLUMNS = ["Tool call", "Provider", "Model", "Size", "Made", "Expires", "Session", "Actions"];

export class CacheView {
  #entries = [];
  #cursor = null;

  constructor(root, { handleError }) {
    this.handleError = handleError;
    this.stats = h("ul.tiles", { "aria-label": "Statistics" });
    this.fields = Object.fromEntries(FILTERS.map((name) => [name, this.#field(name)]));
    this.clearButton = h("button.secondary", { type: "button", onclick: () => this.#clear() }, "Clear");
    this.eraseButton = h("button.danger", { type: "button", onclick: () => this.#erase() }, "Erase");
    this.rows = h("tbody");
    this.known = { provider: h("datalist", { id: "known-provider" }), model: h("datalist", { id: "known-model" }) };
    this.note = h("div.table-note");
    this.element = h("div.page", {},
      h("header.page-head", {}, h("h1", { tabindex: "-1" }, "Cache"),
        h("p", {}, "Thoughts that the gateway can put back. What is cleared is not put back any more, and stays in the log. What is erased is gone from the log as well.")),
      this.stats,
      h("search.toolbar", {}, FILTERS.map((name) => h("label.choice", {}, h("span", {}, LABELS[name]), this.fields[name])), this.clearButton, this.eraseButton),
      h("div.table-scroll", { tabindex: "0", role: "group", "aria-label": "Entries" },
        h("table.entries", {}, h("caption.unseen", {}, "Entries of the cache, the newest first"),
          h("thead", {}, h("tr", {}, COLUMNS.map((name) => h(name === "Size" ? "th.number" : "th", { scope: "col" }, name === "Actions" ? h("span.unseen", {}, name) : name)))), this.rows)),
      this.note, Object.values(this.known));
    setChildren(root, this.element);
    this.scheduleReload = throttled(250, () => this.#load());
    feed.addEventListener("outdated", this.scheduleReload);
  }

  title = () => "Cache";

  end() {
    this.scheduleReload.cancel();
    feed.removeEventListener("outdated", this.scheduleReload);
  }

  search = () => this.fields.provider.focus();
  reload = () => this.#load();

  #field(name) {
    const changed = throttled(250, () => changeQuery({ [name]: this.fields[name].value.trim() }, { replace: true }));
    return h("input.field.small", { type: "search", autocomplete: "off", spellcheck: "false", oninput: changed, list: `known-${name}` });
  }

  update({ query }) {
    this.filter = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
    for (const name of FILTERS) {
      if (document.activeElement !== this.fields[name]) this.fields[name].value = query[name] ?? "";
    }
    const some = Object.keys(this.filter).length > 0;
    this.clearButton.textContent = some ? "Clear what matches" : "Clear all";
    this.eraseButton.textContent = some ? "Erase what matches…" : "Erase all thoughts…";
    this.#load();
  }

  async #load(cursor) {
    const mine = (this.loading = {}); // an answer that is overtaken would bring back what is over
    if (!this.#entries.length) setChildren(this.note, loading());
    try {
      const page = await api.cacheEntries({ ...this.filter, cursor, limit: 50 });
      if (mine !== this.loading) return;
      this.#entries = cursor ? [...this.#entries, ...page.entries] : page.entries;
      this.#cursor = page.nextCursor;
      this.#draw(page.stats);
    } catch (error) {
      if (!this.handleError(error)) setChildren(this.note, errorState(error, () => this.#load()));
    }
  }

  #draw(stats) {
    const lookups = stats.hits + stats.misses;
    setChildren(this.stats,
      tile(count(stats.totalEntries), "entries"), tile(compact(stats.totalChars), "characters"),
      tile(lookups ? `${Math.round((stats.hits / lookups) * 1000) / 10} %` : "–", `found (${count(stats.hits)} of ${count(lookups)})`),
      tile(count(stats.replays), "put back"), tile(count(stats.memoryEntries), "in memory"));
    setChildren(this.known.provider, Object.keys(stats.byProvider).map((value) => h("option", { value })));
    setChildren(this.known.model, Object.keys(stats.byModel).map((value) => h("option", { value })));
    const drawn = JSON.stringify(this.#entries);
    if (drawn !== this.drawn) setChildren(this.rows, this.#entries.map((entry) => this.#row(entry)));
    this.drawn = drawn;
    this.clearButton.disabled = !this.#entries.length;
    this.eraseButton.disabled = false; // what was cleared can still be erased
    setChildren(this.note, this.#entries.length
      ? this.#cursor && h("button.secondary", { type: "button", onclick: () => this.#load(this.#cursor) }, "Show more")
      : Object.keys(this.filter).length
        ? emptyState({ iconName: "search", title: "Nothing matches", text: "Filters are exact: a provider, model, call id or tenant as it is written." })
        : emptyState({ iconName: "cache", title: "Nothing is remembered", text: "Entries appear when a model that thinks has answered through this gateway." }));
  }

  #row(entry) {
    const name = entry.toolCallId ?? "without a call";
    const row = h("tr", {},
      h("th", { scope: "row" }, h("code", { title: name }, shortId(name))), h("td", {}, providerOf(entry)), h("td", {}, entry.model),
      h("td.number", {}, count(entry.charCount)),
      h("td", { title: dateTime(Date.parse(entry.createdAt) / 1000) }, ago(Date.parse(entry.createdAt) / 1000)),
      h("td", {}, entry.expiresAt ? timeUntil(entry.expiresAt) : "never"),
      h("td", {}, h("a", { href: link(["sessions", entry.session], { turn: entry.turn }), title: entry.session }, shortId(entry.session))),
      h("td", {}, h("div.actions", {},
        h("button.linklike", { type: "button", "aria-label": `Show the thought of ${name}`, onclick: () => this.#show(entry, row) }, "Show"),
        iconButton("bin", `Clear ${name}`, () => this.#clearOne(entry)))));
    return row;
  }

  async #show(entry, row) {
    if (row.nextSibling?.classList.contains("shown")) return row.nextSibling.remove();
    const cell = h("td", { colspan: COLUMNS.length }, loading());
    row.after(h("tr.shown", {}, cell));
    try {
      const page = await api.cacheEntries({ ...exactly(entry), include: "reasoning", limit: 200 });
      const found = page.entries.find((one) => one.toolCallId === entry.toolCallId);
      setChildren(cell, found?.reasoning ? prose(found.reasoning) : h("p.fine", {}, "It is encrypted, or has no text."));
    } catch (error) {
      setChildren(cell, h("p.wrong", { role: "alert" }, error.message));
    }
  }

  async #clearOne(entry) {
    const sure = await confirmed({ title: "Clear this entry?", action: "Clear",
      text: "Its thought will not be put back for this call any more. It stays in the log." });
    if (sure) await this.#delete(api.clearCached, exactly(entry), clearedWords);
  }

  async #clear() {
    const filter = this.filter; // what the dialog says is what is done, also when the address changes
    const sure = await confirmed({ title: matching(filter) ? "Clear what matches?" : "Clear the whole cache?", action: "Clear",
      text: `${matching(filter) ? `All entries with ${matching(filter)}` : "All entries"} will not be put back any more, those further down included. Conversations that are under way go on without their earlier thoughts. The log keeps them.` });
    if (sure) await this.#delete(api.clearCached, filter, clearedWords);
  }

  async #erase() {
    const filter = this.filter;
    const sure = await confirmed({ title: "Erase thoughts from the log?", action: "Erase", word: "erase",
      text: `${matching(filter) ? `All thoughts with ${matching(filter)}` : "All thoughts of all sessions, those made by library or command line included,"} will be erased for good. What was said and called stays. This cannot be undone.` });
    if (sure) await this.#delete(api.eraseThoughts, filter, (count) => `${plural(count, "thought", "thoughts")} erased`);
  }

  #showProgress(done, total) {
    const bar = h("progress", { max: Math.max(total, 1), value: done, "aria-label": "Deleting" });
    setChildren(this.note, h("p", { role: "status" }, bar, ` ${count(done)} of ${count(total)}`));
  }

  async #delete(act, filter, words) {
    this.clearButton.disabled = this.eraseButton.disabled = true;
    try {
      announce(words(await act(filter, (done, total) => this.#showProgress(done, total))));
      this.#entries = [];
      await this.#load();
    } catch (error) {
      if (!this.handleError(error)) setChildren(this.note, errorState(error, () => this.#load()));
    }
  }
}

const exactly = ({ tenant, session, turn, toolCallId }) => ({ tenant, session, turn, toolCallId });

const clearedWords = (count) => `${plural(count, "entry", "entries")} cleared`;

const matching = (filter) => Object.entries(filter).map(([name, value]) => `${LABELS[name].toLowerCase()} ${value}`).join(", ");

/** The upstream's name and the policy's, where they differ. */
const providerOf = ({ provider, upstream }) => (upstream && upstream !== provider ? `${upstream} (${provider})` : provider);

function timeUntil(time) {
  const days = (Date.parse(time) - Date.now()) / 86400000;
  return days < 0 ? "now" : days < 1 ? `in ${Math.ceil(days * 24)} h` : `in ${Math.round(days)} d`;
}
