// One request, in a panel beside the conversation: what was put back, what was dropped, and the
// difference between what the client sent and what went upstream.
import * as api from "./api.js";
import { difference } from "./difference.js";
import { h, iconButton, put } from "./dom.js";
import { brief, count, moment, percent } from "./format.js";
import { once } from "./replay.js";
import { loading, trouble } from "./states.js";

const TILES = [
  ["restored", "put back"], ["exact", "sent along"], ["replaced", "corrected"],
  ["dropped", "dropped"], ["missed", "missing"], ["placeholder", "placeholder"],
];

export class RequestPanel {
  constructor({ session, close, jump }) {
    Object.assign(this, { session, close, jump, turn: null, thoughts: false });
    this.body = h("div.panel-body", { tabindex: "0", role: "group", "aria-label": "Details of the request" });
    this.title = h("h2", { id: "request-title", tabindex: "-1" }, "Request");
    this.element = h("aside.panel", { hidden: true, "aria-labelledby": "request-title" },
      h("header.panel-head", {}, this.title, iconButton("close", "Close the request (Escape)", close)), this.body);
  }

  async show(turn, { focus = false } = {}) {
    const same = turn === this.turn;
    if (!same) this.thoughts = false;
    this.turn = turn;
    this.element.hidden = !turn;
    if (!turn) return;
    if (!same) put(this.body, loading());
    if (focus) this.title.focus();
    try {
      const answer = await api.turn(this.session, turn, this.thoughts ? { thoughts: 1 } : {});
      if (this.turn === turn) this.#draw(answer);
    } catch (error) {
      if (this.turn === turn) put(this.body, trouble(error, () => this.show(turn)));
    }
  }

  #draw({ turn, request }) {
    const { provider, endpoint, dialect, model } = turn.target ?? {};
    const counts = once(turn.replay);
    const reveal = h("button.secondary.small", {
      type: "button", "aria-pressed": String(this.thoughts),
      onclick: () => {
        this.thoughts = !this.thoughts;
        this.show(turn.id);
      },
    }, this.thoughts ? "Hide the texts" : "Show the texts");
    put(this.body,
      h("dl.facts-list", {},
        fact("Turn", h("code", { title: turn.id }, brief(turn.id))), fact("Sent", moment(turn.started)),
        fact("To", [provider, endpoint].filter(Boolean).join(", ")), fact("As", [dialect, model].filter(Boolean).join(", ")),
        turn.usage?.input && fact("Prompt", `${count(turn.usage.input)} tokens, ${percent((turn.usage.cached ?? 0) / turn.usage.input)} from the provider's cache`)),
      h("ul.tiles.small", { "aria-label": "Thoughts of earlier turns in this request" },
        TILES.map(([name, label]) => h(`li.tile.${name}`, { "data-zero": String(!counts[name]) },
          h("strong", {}, count(counts[name])), h("span", {}, label)))),
      h("div.section-head", {}, h("h3", {}, "From the client to the provider"), reveal),
      difference(request?.messages ?? [], this.jump));
  }
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value || "–"));
}
