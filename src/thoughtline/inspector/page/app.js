// The page's frame: which view is open, who may look, whether the gateway is there; theme and keyboard.
import { AccessDenied, setToken, token } from "./api.js";
import { CacheView } from "./cache.js";
import { freezeTimers } from "./clock.js";
import { ContinuityView } from "./continuity.js";
import { announce, h, icon, iconButton, recall, remember, setChildren, visibleText } from "./dom.js";
import { feed } from "./feed.js";
import { currentRoute, link, navigate } from "./router.js";
import { RequestsView } from "./requests.js";
import { SessionsView } from "./sessions.js";

const VIEWS = { requests: ["Requests", RequestsView], sessions: ["Sessions", SessionsView], continuity: ["Continuity", ContinuityView], cache: ["Cache", CacheView] };
const STATES = {
  connecting: "Connecting", live: "Live", waiting: "Reconnecting", paused: "Paused", refused: "No access",
};

const root = document.getElementById("main");
let name = "";
let view = null;

function showView() {
  const route = currentRoute();
  const wanted = route.path[0] in VIEWS ? route.path[0] : "requests";
  if (wanted !== name) {
    view?.end();
    name = wanted;
    view = new VIEWS[wanted][1](root, { handleError });
    markTab();
  }
  view.update(route);
  document.title = `${visibleText(view.title())} · Thoughtline`;
}

/** Handles an error that all views handle alike: no access. False leaves it to the view. */
function handleError(error) {
  if (!(error instanceof AccessDenied)) return false;
  view?.end();
  view = null;
  name = "";
  setChildren(root, h("div.centre", {}, tokenForm(error, () => {
    feed.open();
    showView();
  })));
  root.querySelector("#token").focus();
  return true;
}

function drawTabs() {
  setChildren(document.getElementById("tabs"), Object.entries(VIEWS).map(([key, [label]]) =>
    h("a", { href: link([key]), "data-view": key }, icon(key), h("span", {}, label))));
}

/** Marks the tab of the open view. The links are not drawn anew, so that the focus stays on them. */
function markTab() {
  for (const tab of document.querySelectorAll("[data-view]")) {
    if (tab.dataset.view === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

function drawTools() {
  const state = h("span.connection", { role: "status" });
  const update = () => {
    state.dataset.state = feed.state;
    const gone = feed.state === "waiting";
    document.documentElement.toggleAttribute("data-offline", gone);
    freezeTimers(gone);
    setChildren(state, h("i", { "aria-hidden": "true" }), h("span", {}, STATES[feed.state]));
  };
  feed.addEventListener("state", ({ detail }) => {
    update();
    if (detail.state === "live") view?.reload(); // the feed does not repeat what happened before
  });
  update();
  setChildren(document.getElementById("tools"), state, iconButton("help", "Keyboard shortcuts (?)", showHelp), themeSwitch());
}

// -- the admin token ------------------------------------------------------------------------------

/** The form that asks for the token; `denied` is the error that says why one is needed. */
function tokenForm(denied, done) {
  const input = h("input.field", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "token-hint",
  });
  const submit = (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    done();
  };
  const wrong = token() ? "That token was not accepted." : "";
  return h("form.card.state", { onsubmit: submit, "aria-labelledby": "token-title" },
    h("div.state-icon", {}, icon("key", 22)),
    h("h1", { id: "token-title" }, "This gateway asks for its admin token"),
    h("p", { id: "token-hint" }, denied.code === "loopback_only"
      ? "Without a token the inspector opens only on the machine that runs the gateway. Set THOUGHTLINE_ADMIN_TOKEN there, start it again, and enter the token here."
      : "It is the value of access.admin_token in the configuration, or of THOUGHTLINE_ADMIN_TOKEN. It stays in this tab and is gone when you close it."),
    wrong && h("p.wrong", { role: "alert" }, wrong),
    h("div.row", {},
      h("label.unseen", { for: "token" }, "Admin token"), input,
      h("button.primary", { type: "submit" }, "Open the inspector")),
  );
}

// -- theme ----------------------------------------------------------------------------------------

const THEME_KEY = "thoughtline.theme";
const NEXT_THEME = { system: "light", light: "dark", dark: "system" };
const THEME_ICONS = { system: "system", light: "sun", dark: "moon" };

const currentTheme = () => document.documentElement.dataset.theme ?? "system";

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember("localStorage", THEME_KEY, theme);
}

/** A button that goes from the system's theme to light to dark; early.js applies the stored one. */
function themeSwitch() {
  const button = iconButton(THEME_ICONS[currentTheme()], "", () => {
    setTheme(NEXT_THEME[currentTheme()]);
    update();
    announce(`Theme: ${currentTheme()}`);
  });
  const update = () => {
    setChildren(button, icon(THEME_ICONS[currentTheme()]));
    const label = `Theme: ${currentTheme()}. Switch to ${NEXT_THEME[currentTheme()]}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  update();
  return button;
}

// -- keyboard -------------------------------------------------------------------------------------

// Single keys that do what people expect, a list that says which, and a way to turn them off for
// those whose voice or hand presses keys by accident.

const SHORTCUTS_KEY = "thoughtline.keys";

const KEYS = { // key → method of the view, and its argument
  j: ["step", 1], ArrowDown: ["step", 1], k: ["step", -1], ArrowUp: ["step", -1],
  "/": ["search"], "[": ["branch", -1], "]": ["branch", 1], t: ["thoughts"], r: ["look"], l: ["enter"],
};

const HELP = [
  [["j", "↓"], "Next request or session, or next turn when the conversation has the focus"],
  [["k", "↑"], "Previous session or turn"],
  [["Enter"], "Open what has the focus"],
  [["l"], "Go into the open conversation"],
  [["t"], "Unfold the thoughts of this turn"],
  [["r"], "What this request carried"],
  [["[", "]"], "Previous, next branch"],
  [["/"], "Search"],
  [["1", "2", "3", "4"], "Requests, sessions, continuity, cache"],
  [["Esc"], "Close, or back"],
  [["?"], "This list"],
];

let shortcutsOn = recall("localStorage", SHORTCUTS_KEY) !== "off";

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]");
}

/** `currentView()` is the view that is open; `openTab(n)` opens another. */
function listenForKeys({ currentView, openTab }) {
  // A line around what has the focus is for those who use keys: a link that leads to a turn shows none.
  addEventListener("keydown", () => document.documentElement.setAttribute("data-keys", ""), true);
  addEventListener("pointerdown", () => document.documentElement.removeAttribute("data-keys"), true);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (isTyping(event.target)) event.target.blur();
      else currentView()?.escape?.();
      return;
    }
    if (!shortcutsOn || isTyping(event.target)) return;
    if (event.key === "?") return showHelp();
    if (/^[1234]$/.test(event.key)) return openTab(Number(event.key) - 1);
    const arrow = event.key.startsWith("Arrow");
    if (arrow && !event.target.closest?.(".session-list, .request-list, .conversation") && event.target !== document.body) return;
    const [method, argument] = KEYS[event.key] ?? [];
    if (!method || !currentView()?.[method]) return;
    event.preventDefault();
    currentView()[method](argument);
  });
}

function showHelp() {
  const checkbox = h("input", { type: "checkbox", checked: shortcutsOn, onchange: () => {
    shortcutsOn = checkbox.checked;
    remember("localStorage", SHORTCUTS_KEY, shortcutsOn ? "on" : "off");
  } });
  const dialog = h("dialog.card.help", { "aria-labelledby": "help-title" },
    h("header.panel-head", {}, h("h2", { id: "help-title" }, "Keyboard"), iconButton("close", "Close", () => dialog.close())),
    h("dl.keys", {}, HELP.map(([keys, text]) =>
      h("div", {}, h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, text)))),
    h("label.check", {}, checkbox, "Single keys are shortcuts"));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}

// -- start ----------------------------------------------------------------------------------------

addEventListener("hashchange", showView);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  root.focus();
});
listenForKeys({ currentView: () => view, openTab: (n) => navigate([Object.keys(VIEWS)[n]]) });
drawTabs();
drawTools();
feed.ready().then(showView);
feed.start();
