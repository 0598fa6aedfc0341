// Sessions: the list, and beside it the one that is open.
import { h, put } from "./dom.js";
import { go } from "./router.js";
import { SessionPane } from "./session.js";
import { SessionList } from "./sessions.js";
import { empty, noSessions } from "./states.js";

export class Browse {
  #pane = null;

  constructor(root, { problem }) {
    this.problem = problem;
    this.list = new SessionList({ problem });
    this.detail = h("div.detail");
    this.element = h("div.split", {}, this.list.element, this.detail);
    this.list.ondraw = ({ begun }) => !this.#pane && this.#nothing(begun);
    put(root, this.element);
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
      this.#pane = id ? new SessionPane(id, { problem: this.problem }) : null;
      if (this.#pane) {
        put(this.detail, this.#pane.element);
        this.#pane.load(route);
      } else {
        this.#nothing(true);
      }
    } else {
      this.#pane?.update(route);
    }
    if (left) this.list.focus(); // while it still knows which one was open
    this.list.update(route);
  }

  #nothing(begun) {
    put(this.detail, begun ? empty({ drawn: "sessions", title: "Choose a session",
      text: "Its turns, its branches, and where each of its thoughts went." }) : noSessions());
  }

  /** After a pause or a lost connection: what was shown may be old. */
  reload() {
    this.list.soon();
    this.#pane?.resume();
  }

  end() {
    this.list.end();
    this.#pane?.end();
  }

  // -- keys --------------------------------------------------------------------------------------

  #inside() {
    return this.#pane && this.detail.contains(document.activeElement);
  }

  step(by) {
    if (this.#inside()) this.#pane.step(by);
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
    const { q, provider, model, tenant, status } = this.route.query;
    if (this.route.path[2]) go(["sessions", this.route.path[1]]);
    else if (this.#inside()) {
      if (getComputedStyle(this.list.element).display === "none") go(["sessions"], { q, provider, model, tenant, status });
      else this.list.focus();
    }
  }
}
