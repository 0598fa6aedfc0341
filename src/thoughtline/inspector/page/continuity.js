// The continuity view: what became of earlier thoughts over time, and what prompt caches saved.
import * as api from "./api.js";
import { chart } from "./charts.js";
import { h, setChildren, throttled } from "./dom.js";
import { feed } from "./feed.js";
import { withoutDoubleCounts } from "./request.js";
import { changeQuery } from "./router.js";
import { emptyState, errorState, loading, tile } from "./widgets.js";
import { compact, count, money, percent, times } from "./words.js";

const PERIODS = [[1, "1 hour"], [24, "24 hours"], [168, "7 days"], [720, "30 days"]];
const ACTION_COUNTS = [["exact", "Exact"], ["restored", "Put back"], ["replaced", "Corrected"], ["placeholder", "Placeholder"], ["dropped", "Dropped"], ["tied", "Tied"], ["missed", "Missed"]];
const TOKENS = [["inputTokens", "Prompt tokens"], ["cachedTokens", "Of these from the provider's cache"], ["outputTokens", "Written tokens"], ["reasoningTokens", "Of these thought"]];
const COST = [["cost", "US dollars"]];

export class ContinuityView {
  #seen = { provider: new Set(), model: new Set() };

  constructor(root, { handleError }) {
    this.handleError = handleError;
    this.spans = h("div.segments", { role: "group", "aria-label": "Time" });
    this.choices = Object.fromEntries(["provider", "model"].map((name) => [name, this.#select(name)]));
    this.body = h("div.continuity");
    this.element = h("div.page", {},
      h("header.page-head", {}, h("h1", { tabindex: "-1" }, "Continuity"), h("p", {}, "Whether earlier thoughts reached the provider again, and what that did for its prompt cache.")),
      h("div.toolbar", {}, this.spans, Object.entries(this.choices).map(([name, select]) => h("label.choice", {}, h("span.unseen", {}, name), select))),
      this.body);
    setChildren(root, this.element);
    this.scheduleRefresh = throttled(5000, () => !document.hidden && this.#load());
    feed.addEventListener("event", this.scheduleRefresh);
    feed.addEventListener("reset", this.scheduleRefresh);
  }

  title = () => "Continuity";
  reload = () => this.#load();
  search = () => this.choices.provider.focus();

  end() {
    this.scheduleRefresh.cancel();
    feed.removeEventListener("event", this.scheduleRefresh);
    feed.removeEventListener("reset", this.scheduleRefresh);
  }

  #select(name) {
    const select = h("select.field.small", { onchange: () => changeQuery({ [name]: select.value }, { replace: true }) });
    return select;
  }

  update({ query }) {
    this.query = query;
    const hours = Number(query.hours) || 24;
    setChildren(this.spans, PERIODS.map(([value, label]) => h("button", {
      type: "button", "aria-pressed": String(value === hours), onclick: () => changeQuery({ hours: value }, { replace: true }),
    }, label)));
    this.#options();
    this.#load();
  }

  #options() {
    for (const [name, select] of Object.entries(this.choices)) {
      const chosen = this.query[name] ?? "";
      if (chosen) this.#seen[name].add(chosen);
      setChildren(select, h("option", { value: "" }, `Every ${name}`), [...this.#seen[name]].sort().map((one) => h("option", { value: one }, one)));
      select.value = chosen;
    }
  }

  async #load() {
    const { hours, provider, model } = this.query;
    const query = JSON.stringify(this.query);
    if (!this.body.firstChild) setChildren(this.body, loading());
    try {
      const answer = await api.continuity({ hours: hours ?? 24, provider, model });
      if (query === JSON.stringify(this.query)) this.#draw(answer);
    } catch (error) {
      if (!this.handleError(error)) setChildren(this.body, errorState(error, () => this.#load()));
    }
  }

  #draw(answer) {
    Object.keys(answer.byProvider).forEach((name) => this.#seen.provider.add(name));
    Object.keys(answer.byModel).forEach((name) => this.#seen.model.add(name));
    if (!this.element.contains(document.activeElement) || document.activeElement.tagName !== "SELECT") this.#options();
    const sum = (field) => answer.buckets.reduce((total, bucket) => total + (bucket[field] ?? 0), 0);
    const totals = Object.fromEntries([...ACTION_COUNTS, ...TOKENS, ...COST].map(([field]) => [field, sum(field)]));
    const once = answer.total.new; // each earlier output counts once, however many requests repeat it
    const requests = totals.restored > once.restored ? ` (in requests ${times(totals.restored)})` : "";
    if (!Object.values(totals).some(Boolean)) {
      setChildren(this.body, emptyState({ iconName: "continuity", title: "Nothing in this time", text: "Choose a longer time, or let a client talk for more than one turn: only then is there something to put back." }));
      return;
    }
    setChildren(this.body,
      h("ul.tiles", { "aria-label": "In all" },
        tile(percent(answer.hitRate), "hit rate: thoughts found when they were needed"),
        tile(count(once.restored), `put back${requests}`, "restored"), tile(count(once.missed), once.placeholder ? `missed; a placeholder stood in ${times(once.placeholder)}` : "missed", "missed"),
        once.tied > 0 && tile(count(once.tied), "tied: several turns fit equally well", "tied"),
        tile(count(once.dropped), "dropped", "dropped"), tile(percent(answer.cachedShare), "of the prompt from the provider's cache"),
        tile(money(answer.total.cost), answer.total.cost === null ? "cost: no price is known" : "cost of the turns whose price is known")),
      h("div.charts", {}, chart({ title: "What became of earlier thoughts, request by request", kind: "bars", series: ACTION_COUNTS, buckets: answer.buckets.map(withoutDoubleCounts),
        summary: ACTION_COUNTS.map(([field, label]) => `${label} ${count(withoutDoubleCounts(totals)[field])}`).join(", ") }),
      chart({ title: "Tokens", kind: "areas", series: TOKENS, buckets: withoutEmptyEnd(answer.buckets),
        summary: `${count(totals.inputTokens)} in all, ${count(totals.cachedTokens)} of them cached, ${count(totals.outputTokens)} written` }),
      totals.cost > 0 && chart({ title: "Cost", kind: "bars", series: COST, buckets: answer.buckets, format: money, summary: `${money(totals.cost)} in all` })),
      h("div.pair", {}, shares("By provider", answer.byProvider), shares("By model", answer.byModel)));
  }
}

/** Without the last interval while nothing is in it yet: the chart would drop to zero. */
const withoutEmptyEnd = (buckets) => (buckets.at(-1)?.inputTokens === 0 ? buckets.slice(0, -1) : buckets);

function shares(title, groups) {
  const rows = Object.entries(groups).sort(([, a], [, b]) => weight(b) - weight(a));
  return h("section.card.shares", {}, h("h2", {}, title),
    h("div.table-scroll", { tabindex: "0", role: "group", "aria-label": title },
      h("table", {}, h("thead", {}, h("tr", {}, [title.replace("By ", ""), "Hit rate", "Put back", "Missed", "Dropped", "Cached", "Out", "Cost"].map((name, index) =>
        h(index ? "th.number" : "th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map(([name, group]) => h("tr", {}, h("th", { scope: "row" }, name || "unknown"),
        h("td.number", {}, percent(rate(group))), h("td.number", {}, compact(group.new.restored)), h("td.number", {}, compact(group.new.missed + group.new.tied)),
        h("td.number", {}, compact(group.new.dropped)), h("td.number", {}, percent(cachedShare(group))), h("td.number", {}, compact(group.outputTokens)), h("td.number", {}, money(group.cost))))))));
}

/** Thoughts that were found, as the gateway counts them: put back, exact or corrected. */
const found = (group) => (group.restored ?? 0) + (group.replaced ?? 0) + (group.exact ?? 0);
const weight = (group) => found(group) + (group.missed ?? 0) + (group.tied ?? 0) + (group.dropped ?? 0);

function rate(group) {
  if (group.hitRate !== undefined) return group.hitRate;
  const wanted = found(group) + (group.missed ?? 0) + (group.tied ?? 0);
  return wanted ? found(group) / wanted : null;
}

function cachedShare(group) {
  if (group.cachedShare !== undefined) return group.cachedShare;
  return group.inputTokens ? group.cachedTokens / group.inputTokens : null;
}
