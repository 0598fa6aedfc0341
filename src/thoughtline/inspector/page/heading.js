// The head of a session: its title, what there is to know about it at a glance, and its branches.
import { picker, rival } from "./branches.js";
import { announce, h, icon, iconButton, plain, put } from "./dom.js";
import { ago, brief, moment, plural } from "./format.js";
import { adjust, link } from "./router.js";
import { status } from "./status.js";

export class Heading {
  constructor({ id, remove }) {
    Object.assign(this, { id, remove });
    this.element = h("header.session-head");
  }

  /** A session that cannot be shown. */
  fail(route) {
    put(this.element, h("div.session-title", {}, this.#back(route), h("h1", {}, "Session")));
  }

  /** Draw what is new, and leave what has the focus where it is; a choice that is being made is not disturbed. */
  show({ facts, tree, head, route, live }) {
    document.title = `${plain(facts.title || "Untitled")} · Thoughtline`;
    const shown = [this.#title(facts, route), this.#facts(facts), route.path[2] !== "compare" && this.#branches(tree, head)].filter(Boolean);
    const same = shown.length === this.element.children.length && shown.every((part, n) => part.isEqualNode(this.element.children[n]));
    const held = this.element.contains(document.activeElement) && document.activeElement;
    if (same || (live && held?.tagName === "SELECT")) return;
    put(this.element, shown);
    if (held) this.element.querySelector(`[data-focus="${held.dataset.focus}"]`)?.focus();
  }

  #back({ path, query }) {
    const { q, provider, model, tenant, status: state } = query;
    const to = path[2] ? link(["sessions", this.id]) : link(["sessions"], { q, provider, model, tenant, status: state });
    return h(path[2] ? "a.icon-button.back.always" : "a.icon-button.back", {
      href: to, "aria-label": path[2] ? "Back to the conversation" : "Back to the list", title: "Back", "data-focus": "back",
    }, icon("back"));
  }

  #title(facts, route) {
    const copy = () => navigator.clipboard?.writeText(this.id).then(() => announce("Copied"));
    return h("div.session-title", {}, this.#back(route), h("h1", { title: facts.title }, facts.title || "Untitled"), status(facts.status),
      iconButton("copy", "Copy the session's id", copy, { "data-focus": "copy" }),
      iconButton("bin", "Delete this session", this.remove, { "data-focus": "delete" }));
  }

  #facts(facts) {
    const began = ago(facts.created);
    return h("div.session-facts", {},
      h("span", { title: facts.models.join(", ") }, facts.models.join(", ") || "no model"),
      h("span", { title: facts.providers.join(", ") }, facts.providers.join(", ")),
      h("span", {}, plural(facts.turns, "turn")), h("span", {}, plural(facts.thoughts, "thought")),
      h("span", { title: moment(facts.created) }, `began ${began === "now" ? "just now" : `${began} ago`}`),
      facts.tenant && h("span", { title: `Tenant ${facts.tenant}` }, `tenant ${brief(facts.tenant)}`),
      h("code", { title: this.id }, brief(this.id)));
  }

  #branches(tree, head) {
    const choice = picker(tree, head, { label: "Branch", id: "pick-branch", choose: (one) => adjust({ head: one, turn: undefined }) });
    return choice && h("div.session-branches", {}, choice,
      h("a.secondary.small", { href: link(["sessions", this.id, "compare"], { left: head, right: rival(tree, head) }), "data-focus": "compare" },
        icon("compare"), "Compare"));
  }
}

/** Where a session comes from, if it is a fork. */
export function origin(forked) {
  return forked && h("p.forked", {}, icon("branch"), "Forked from ",
    h("a", { href: link(["sessions", forked.session], { turn: forked.turn }) }, brief(forked.session)));
}
