// Puts the page together: which view is open, who may look, and whether the gateway is there.
import { Refused } from "./api.js";
import { Browse } from "./browse.js";
import { Cache } from "./cache.js";
import { Continuity } from "./continuity.js";
import { h, icon, iconButton, plain, put } from "./dom.js";
import { feed } from "./feed.js";
import { help, listen } from "./keys.js";
import { go, link, where } from "./router.js";
import { themeSwitch } from "./theme.js";
import { tokenForm } from "./token.js";

const VIEWS = { sessions: ["Sessions", Browse], continuity: ["Continuity", Continuity], cache: ["Cache", Cache] };
const STATES = {
  connecting: "Connecting", live: "Live", waiting: "Reconnecting", paused: "Paused", refused: "No access",
};

const root = document.getElementById("main");
let name = "";
let view = null;

function show() {
  const route = where();
  const wanted = route.path[0] in VIEWS ? route.path[0] : "sessions";
  if (wanted !== name) {
    view?.end();
    name = wanted;
    view = new VIEWS[wanted][1](root, { problem });
    mark();
  }
  view.update(route);
  document.title = `${plain(view.title())} · Thoughtline`;
}

/** Deals with what every view would deal with alike; false leaves it to the view. */
function problem(error) {
  if (!(error instanceof Refused)) return false;
  view?.end();
  view = null;
  name = "";
  put(root, h("div.centre", {}, tokenForm(error, () => {
    feed.open();
    show();
  })));
  root.querySelector("#token").focus();
  return true;
}

function tabs() {
  put(document.getElementById("tabs"), Object.entries(VIEWS).map(([key, [label]]) =>
    h("a", { href: link([key]), "data-view": key }, icon(key), h("span", {}, label))));
}

/** Links stay what they are, so that the focus stays on them. */
function mark() {
  for (const tab of document.querySelectorAll("[data-view]")) {
    if (tab.dataset.view === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

function tools() {
  const state = h("span.connection", { role: "status" });
  const say = () => {
    state.dataset.state = feed.state;
    put(state, h("i", { "aria-hidden": "true" }), h("span", {}, STATES[feed.state]));
  };
  feed.addEventListener("state", ({ detail }) => {
    say();
    if (detail.state === "live") view?.reload(); // what happened before is not told again
  });
  say();
  put(document.getElementById("tools"), state, iconButton("help", "Keyboard shortcuts (?)", help), themeSwitch());
}

addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  root.focus();
});
listen({ view: () => view, tab: (n) => go([Object.keys(VIEWS)[n]]) });
tabs();
tools();
show();
feed.start();
