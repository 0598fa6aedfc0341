// What the gateway remembers of thoughts: how much, which, and how to have it forgotten.
import * as api from "./api.js";
import { confirmed } from "./confirm.js";
import { announce, calmly, h, iconButton, put } from "./dom.js";
import { ago, brief, count, moment, plural, short } from "./format.js";
import { prose } from "./prose.js";
import { adjust, link } from "./router.js";
import { empty, loading, trouble } from "./states.js";

const NAMES = ["provider", "model", "toolCallId", "tenant"];
const LABELS = { provider: "Provider", model: "Model", toolCallId: "Tool call id", tenant: "Tenant" };
const HEADS = ["Tool call", "Provider", "Model", "Size", "Made", "Expires", "Session", "Actions"];

export class Cache {
  #entries = [];
  #cursor = null;

  constructor(root, { problem }) {
    this.problem = problem;
    this.stats = h("ul.tiles", { "aria-label": "Statistics" });
    this.fields = Object.fromEntries(NAMES.map((name) => [name, this.#field(name)]));
    this.clearButton = h("button.danger", { type: "button", onclick: () => this.#clear() }, "Clear");
    this.rows = h("tbody");
    this.known = { provider: h("datalist", { id: "known-provider" }), model: h("datalist", { id: "known-model" }) };
    this.note = h("div.table-note");
    this.element = h("div.page", {},
      h("header.page-head", {}, h("h1", { tabindex: "-1" }, "Cache"),
        h("p", {}, "Thoughts that the gateway can put back. What is cleared here is never put back, and its text is erased from the log.")),
      this.stats,
      h("search.toolbar", {}, NAMES.map((name) => h("label.choice", {}, h("span", {}, LABELS[name]), this.fields[name])), this.clearButton),
      h("div.table-scroll", { tabindex: "0", role: "group", "aria-label": "Entries" },
        h("table.entries", {}, h("caption.unseen", {}, "Entries of the cache, the newest first"),
          h("thead", {}, h("tr", {}, HEADS.map((name) => h(name === "Size" ? "th.number" : "th", { scope: "col" }, name === "Actions" ? h("span.unseen", {}, name) : name)))), this.rows)),
      this.note, Object.values(this.known));
    put(root, this.element);
  }

  title = () => "Cache";
  end() {}
  search = () => this.fields.provider.focus();
  reload = () => this.#load();

  #field(name) {
    const changed = calmly(250, () => adjust({ [name]: this.fields[name].value.trim() }, { replace: true }));
    return h("input.field.small", { type: "search", autocomplete: "off", spellcheck: "false", oninput: changed, list: `known-${name}` });
  }

  update({ query }) {
    this.filter = Object.fromEntries(NAMES.filter((name) => query[name]).map((name) => [name, query[name]]));
    for (const name of NAMES) {
      if (document.activeElement !== this.fields[name]) this.fields[name].value = query[name] ?? "";
    }
    this.clearButton.textContent = Object.keys(this.filter).length ? "Clear what matches" : "Clear all";
    this.#load();
  }

  async #load(cursor) {
    const asked = JSON.stringify(this.filter);
    if (!this.#entries.length) put(this.note, loading());
    try {
      const page = await api.cached({ ...this.filter, cursor, limit: 50 });
      if (asked !== JSON.stringify(this.filter)) return;
      this.#entries = cursor ? [...this.#entries, ...page.entries] : page.entries;
      this.#cursor = page.nextCursor;
      this.#draw(page.stats);
    } catch (error) {
      if (!this.problem(error)) put(this.note, trouble(error, () => this.#load()));
    }
  }

  #draw(stats) {
    const asked = stats.hits + stats.misses;
    put(this.stats,
      tile(count(stats.totalEntries), "entries"), tile(short(stats.totalChars), "characters"),
      tile(asked ? `${Math.round((stats.hits / asked) * 1000) / 10} %` : "–", `found (${count(stats.hits)} of ${count(asked)})`),
      tile(count(stats.replays), "put back"), tile(count(stats.memoryEntries), "in memory"));
    put(this.known.provider, Object.keys(stats.byProvider).map((value) => h("option", { value })));
    put(this.known.model, Object.keys(stats.byModel).map((value) => h("option", { value })));
    put(this.rows, this.#entries.map((entry) => this.#row(entry)));
    this.clearButton.disabled = !this.#entries.length;
    put(this.note, this.#entries.length
      ? this.#cursor && h("button.secondary", { type: "button", onclick: () => this.#load(this.#cursor) }, "Show more")
      : Object.keys(this.filter).length
        ? empty({ drawn: "search", title: "Nothing matches", text: "Filters are exact: a provider, model, call id or tenant as it is written." })
        : empty({ drawn: "cache", title: "Nothing is remembered", text: "Entries appear when a model that thinks has answered through this gateway." }));
  }

  #row(entry) {
    const name = entry.toolCallId ?? "without a call";
    const row = h("tr", {},
      h("th", { scope: "row" }, h("code", { title: name }, brief(name))), h("td", {}, entry.provider), h("td", {}, entry.model),
      h("td.number", {}, count(entry.charCount)),
      h("td", { title: moment(Date.parse(entry.createdAt) / 1000) }, ago(Date.parse(entry.createdAt) / 1000)),
      h("td", {}, entry.expiresAt ? until(entry.expiresAt) : "never"),
      h("td", {}, h("a", { href: link(["sessions", entry.session], { turn: entry.turn }), title: entry.session }, brief(entry.session))),
      h("td", {}, h("div.actions", {},
        h("button.linklike", { type: "button", "aria-label": `Show the thought of ${name}`, onclick: () => this.#show(entry, row) }, "Show"),
        entry.toolCallId && iconButton("bin", `Delete ${name}`, () => this.#delete(entry)))));
    return row;
  }

  async #show(entry, row) {
    if (row.nextSibling?.classList.contains("shown")) return row.nextSibling.remove();
    const cell = h("td", { colspan: HEADS.length }, loading());
    row.after(h("tr.shown", {}, cell));
    try {
      const page = await api.cached({ ...exact(entry), include: "reasoning", limit: 200 });
      const found = page.entries.find((one) => one.turn === entry.turn && one.toolCallId === entry.toolCallId);
      put(cell, found?.reasoning ? prose(found.reasoning) : h("p.fine", {}, "It is encrypted, or has no text."));
    } catch (error) {
      put(cell, h("p.wrong", { role: "alert" }, error.message));
    }
  }

  async #delete(entry) {
    const meant = await confirmed({ title: "Delete this entry?", action: "Delete",
      text: `Thoughts before calls with the id ${entry.toolCallId}, of this provider, model and tenant, will not be put back any more.` });
    if (meant) await this.#forget(exact(entry));
  }

  async #clear() {
    const which = this.filter; // what is said is what is done, also when the address changes meanwhile
    const said = Object.entries(which).map(([name, value]) => `${LABELS[name].toLowerCase()} ${value}`).join(", ");
    const meant = await confirmed({ title: said ? "Clear what matches?" : "Clear the whole cache?", action: "Clear",
      text: `${said ? `All entries with ${said}` : "All entries"} will be forgotten, those further down included. Conversations that are under way go on without their earlier thoughts.` });
    if (meant) await this.#forget(which);
  }

  async #forget(which) {
    try {
      const { cleared } = await api.forget(which);
      announce(`${plural(cleared, "entry", "entries")} deleted`);
      this.#entries = [];
      await this.#load();
    } catch (error) {
      if (!this.problem(error)) put(this.note, trouble(error, () => this.#load()));
    }
  }
}

const exact = ({ provider, model, toolCallId, tenant }) => ({ provider, model, toolCallId, tenant });
const tile = (value, label) => h("li.tile", {}, h("strong", {}, value), h("span", {}, label));

function until(time) {
  const days = (Date.parse(time) - Date.now()) / 86400000;
  return days < 0 ? "now" : days < 1 ? `in ${Math.ceil(days * 24)} h` : `in ${Math.round(days)} d`;
}
