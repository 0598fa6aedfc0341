// The search field of the list and its filters; what is chosen stands in the address.
import { STATUSES, statusWords } from "./codes.js";
import { calmly, h, icon, put } from "./dom.js";
import { adjust } from "./router.js";

const CHOICES = [["status", "Any status"], ["provider", "Any provider"], ["model", "Any model"], ["tenant", "Any tenant"]];
export const NAMES = ["q", ...CHOICES.map(([name]) => name)];

export class Filters {
  #seen = { status: new Set(Object.keys(STATUSES)), provider: new Set(), model: new Set(), tenant: new Set() };
  #selects = {};

  constructor() {
    const typed = calmly(180, () => adjust({ q: this.search.value.trim() }, { replace: true }));
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
    const select = h("select.field.small", { id: `filter-${name}`, onchange: () => adjust({ [name]: select.value }, { replace: true }) },
      h("option", { value: "" }, any));
    this.#selects[name] = select;
    return h("label.choice", { for: select.id }, h("span.unseen", {}, name), select);
  }

  #open(open) {
    this.grid.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  /** What the address says. */
  update(query) {
    if (document.activeElement !== this.search) this.search.value = query.q ?? "";
    let chosen = 0;
    for (const [name, any] of CHOICES) {
      const value = query[name] ?? "";
      if (value) {
        this.#seen[name].add(value);
        chosen += 1;
      }
      const options = [...this.#seen[name]].filter(Boolean).sort().map((one) => h("option", { value: one }, name === "status" ? statusWords(one) : one));
      put(this.#selects[name], h("option", { value: "" }, any), options);
      this.#selects[name].value = value;
    }
    this.badge.hidden = !chosen;
    this.badge.textContent = chosen;
    if (chosen) this.#open(true);
  }

  /** Learn what can be chosen from sessions that were seen. */
  learn(sessions) {
    for (const session of sessions) {
      session.providers.forEach((one) => this.#seen.provider.add(one));
      session.models.forEach((one) => this.#seen.model.add(one));
      if (session.tenant) this.#seen.tenant.add(session.tenant);
    }
  }
}
