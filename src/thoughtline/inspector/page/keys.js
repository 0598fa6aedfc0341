// The keyboard: single keys that do what people expect, a page that says which, and a way to turn
// them off for those whose voice or hand presses keys by accident.
import { h, iconButton } from "./dom.js";

const PLACE = "thoughtline.keys";

const KEYS = {
  j: ["step", 1], ArrowDown: ["step", 1], k: ["step", -1], ArrowUp: ["step", -1],
  "/": ["search"], "[": ["branch", -1], "]": ["branch", 1], t: ["thoughts"], r: ["look"], l: ["enter"],
};

const WORDS = [
  [["j", "↓"], "Next session, or next turn when the conversation has the focus"],
  [["k", "↑"], "Previous session or turn"],
  [["Enter"], "Open the session that has the focus"],
  [["l"], "Go into the open conversation"],
  [["t"], "Unfold the thoughts of this turn"],
  [["r"], "What this request carried"],
  [["[", "]"], "Previous, next branch"],
  [["/"], "Search"],
  [["1", "2", "3"], "Sessions, continuity, cache"],
  [["Esc"], "Close, or back"],
  [["?"], "This list"],
];

let enabled = true;
try {
  enabled = localStorage.getItem(PLACE) !== "off";
} catch {
  // On, then.
}

function typing(target) {
  return target.closest?.("input, textarea, select, [contenteditable]");
}

/** `view()` answers the view that is open; `tab(n)` opens another. */
export function listen({ view, tab }) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (typing(event.target)) event.target.blur();
      else view()?.escape?.();
      return;
    }
    if (!enabled || typing(event.target)) return;
    if (event.key === "?") return help();
    if (/^[123]$/.test(event.key)) return tab(Number(event.key) - 1);
    const arrow = event.key.startsWith("Arrow");
    if (arrow && !event.target.closest?.(".session-list, .conversation") && event.target !== document.body) return;
    const [name, argument] = KEYS[event.key] ?? [];
    if (!name || !view()?.[name]) return;
    event.preventDefault();
    view()[name](argument);
  });
}

export function help() {
  const box = h("input", { type: "checkbox", checked: enabled, onchange: () => {
    enabled = box.checked;
    try {
      localStorage.setItem(PLACE, enabled ? "on" : "off");
    } catch {
      // It lasts until the page is left.
    }
  } });
  const dialog = h("dialog.card.help", { "aria-labelledby": "help-title" },
    h("header.panel-head", {}, h("h2", { id: "help-title" }, "Keyboard"), iconButton("close", "Close", () => dialog.close())),
    h("dl.keys", {}, WORDS.map(([keys, text]) =>
      h("div", {}, h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, text)))),
    h("label.check", {}, box, "Single keys are shortcuts"));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
