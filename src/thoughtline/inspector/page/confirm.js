// Asks before something is gone for good.
import { h } from "./dom.js";

/** Resolves to whether the person meant it. */
export function confirmed({ title, text, action }) {
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title), h("p", { id: "confirm-text" }, text),
      h("div.row.end", {}, h("button.secondary", { value: "no", autofocus: true }, "Keep"),
        h("button.danger", { value: "yes" }, action)));
    const dialog = h("dialog.card", { "aria-labelledby": "confirm-title", "aria-describedby": "confirm-text" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
