// How well thoughts come back, over time: restored, missed, dropped, and what the prompt caches save.
import * as api from "./api.js";
import { chart } from "./charts.js";
import { calmly, h, put } from "./dom.js";
import { feed } from "./feed.js";
import { count, percent, short, times } from "./format.js";
import { once } from "./replay.js";
import { adjust } from "./router.js";
import { empty, loading, trouble } from "./states.js";

const SPANS = [[1, "1 hour"], [24, "24 hours"], [168, "7 days"], [720, "30 days"]];
const FATES = [["exact", "Sent along"], ["restored", "Put back"], ["replaced", "Corrected"], ["placeholder", "Placeholder"], ["dropped", "Dropped"], ["missed", "Missing"]];
const TOKENS = [["inputTokens", "Prompt tokens"], ["cachedTokens", "Of these from the provider's cache"]];

export class Continuity {
  #seen = { provider: new Set(), model: new Set() };

  constructor(root, { problem }) {
    this.problem = problem;
    this.spans = h("div.segments", { role: "group", "aria-label": "Time" });
    this.choices = Object.fromEntries(["provider", "model"].map((name) => [name, this.#select(name)]));
    this.body = h("div.continuity");
    this.element = h("div.page", {},
      h("header.page-head", {}, h("h1", { tabindex: "-1" }, "Continuity"), h("p", {}, "Whether earlier thoughts reached the provider again, and what that did for its prompt cache.")),
      h("div.toolbar", {}, this.spans, Object.entries(this.choices).map(([name, select]) => h("label.choice", {}, h("span.unseen", {}, name), select))),
      this.body);
    put(root, this.element);
    this.soon = calmly(5000, () => !document.hidden && this.#load());
    feed.addEventListener("event", this.soon);
  }

  title = () => "Continuity";
  reload = () => this.#load();
  search = () => this.choices.provider.focus();

  end() {
    this.soon.cancel();
    feed.removeEventListener("event", this.soon);
  }

  #select(name) {
    const select = h("select.field.small", { onchange: () => adjust({ [name]: select.value }, { replace: true }) });
    return select;
  }

  update({ query }) {
    this.query = query;
    const hours = Number(query.hours) || 24;
    put(this.spans, SPANS.map(([value, label]) => h("button", {
      type: "button", "aria-pressed": String(value === hours), onclick: () => adjust({ hours: value }, { replace: true }),
    }, label)));
    this.#options();
    this.#load();
  }

  #options() {
    for (const [name, select] of Object.entries(this.choices)) {
      const chosen = this.query[name] ?? "";
      if (chosen) this.#seen[name].add(chosen);
      put(select, h("option", { value: "" }, `Every ${name}`), [...this.#seen[name]].sort().map((one) => h("option", { value: one }, one)));
      select.value = chosen;
    }
  }

  async #load() {
    const { hours, provider, model } = this.query;
    const asked = JSON.stringify(this.query);
    if (!this.body.firstChild) put(this.body, loading());
    try {
      const answer = await api.continuity({ hours: hours ?? 24, provider, model });
      if (asked === JSON.stringify(this.query)) this.#draw(answer);
    } catch (error) {
      if (!this.problem(error)) put(this.body, trouble(error, () => this.#load()));
    }
  }

  #draw(answer) {
    Object.keys(answer.byProvider).forEach((name) => this.#seen.provider.add(name));
    Object.keys(answer.byModel).forEach((name) => this.#seen.model.add(name));
    if (!this.element.contains(document.activeElement) || document.activeElement.tagName !== "SELECT") this.#options();
    const sum = (field) => answer.buckets.reduce((total, bucket) => total + (bucket[field] ?? 0), 0);
    const totals = Object.fromEntries([...FATES, ...TOKENS].map(([field]) => [field, sum(field)]));
    if (!Object.values(totals).some(Boolean)) {
      put(this.body, empty({ drawn: "continuity", title: "Nothing in this time", text: "Choose a longer time, or let a client talk for more than one turn: only then is there something to put back." }));
      return;
    }
    put(this.body,
      h("ul.tiles", { "aria-label": "In all" },
        tile("", percent(answer.hitRate), "hit rate: thoughts found when they were needed"),
        tile("restored", count(totals.restored), "put back"), tile("missed", count(totals.missed), totals.placeholder ? `missing; a placeholder stood in ${times(totals.placeholder)}` : "missing"),
        tile("dropped", count(totals.dropped), "dropped"), tile("", percent(answer.cachedShare), "of the prompt from the provider's cache")),
      chart({ title: "What became of earlier thoughts", kind: "bars", series: FATES, buckets: answer.buckets.map(once),
        summary: FATES.map(([field, label]) => `${label} ${count(once(totals)[field])}`).join(", ") }),
      chart({ title: "Prompt tokens", kind: "areas", series: TOKENS, buckets: begun(answer.buckets),
        summary: `${count(totals.inputTokens)} in all, ${count(totals.cachedTokens)} of them cached` }),
      h("div.pair", {}, shares("By provider", answer.byProvider), shares("By model", answer.byModel)));
  }
}

/** Without the time that has only begun, if nothing is in it yet: it would look like the end. */
const begun = (buckets) => (buckets.at(-1)?.inputTokens === 0 ? buckets.slice(0, -1) : buckets);

const tile = (kind, value, label) => h(`li.tile${kind && `.${kind}`}`, {}, h("strong", {}, value), h("span", {}, label));

function shares(title, groups) {
  const rows = Object.entries(groups).sort(([, a], [, b]) => weight(b) - weight(a));
  return h("section.card.shares", {}, h("h2", {}, title),
    h("div.table-scroll", { tabindex: "0", role: "group", "aria-label": title },
      h("table", {}, h("thead", {}, h("tr", {}, [title.replace("By ", ""), "Hit rate", "Put back", "Missing", "Dropped", "Cached"].map((name, index) =>
        h(index ? "th.number" : "th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map(([name, group]) => h("tr", {}, h("th", { scope: "row" }, name || "unknown"),
        h("td.number", {}, percent(rate(group))), h("td.number", {}, short(group.restored)), h("td.number", {}, short(group.missed)),
        h("td.number", {}, short(group.dropped)), h("td.number", {}, percent(cachedShare(group)))))))));
}

/** As the gateway counts it: put back, sent along or corrected. */
const found = (group) => (group.restored ?? 0) + (group.replaced ?? 0) + (group.exact ?? 0);
const weight = (group) => found(group) + (group.missed ?? 0) + (group.dropped ?? 0);

function rate(group) {
  if (group.hitRate !== undefined) return group.hitRate;
  const wanted = found(group) + (group.missed ?? 0);
  return wanted ? found(group) / wanted : null;
}

function cachedShare(group) {
  if (group.cachedShare !== undefined) return group.cachedShare;
  return group.inputTokens ? Math.min(1, group.cachedTokens / group.inputTokens) : null;
}
