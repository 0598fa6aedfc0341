// Light, dark, or what the system says; early.js applies the choice before the first paint.
import { announce, icon, iconButton, put } from "./dom.js";

const PLACE = "thoughtline.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const DRAWN = { system: "system", light: "sun", dark: "moon" };

const current = () => document.documentElement.dataset.theme ?? "system";

function choose(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(PLACE, theme);
  } catch {
    // It lasts until the page is left.
  }
}

export function themeSwitch() {
  const button = iconButton(DRAWN[current()], "", () => {
    choose(NEXT[current()]);
    show();
    announce(`Theme: ${current()}`);
  });
  const show = () => {
    put(button, icon(DRAWN[current()]));
    const label = `Theme: ${current()}. Switch to ${NEXT[current()]}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  show();
  return button;
}
