// The administrator's token: kept for this tab only, and asked for when the gateway wants one.
import { h, icon } from "./dom.js";

const PLACE = "thoughtline.token";
let kept = "";
try {
  kept = sessionStorage.getItem(PLACE) ?? "";
} catch {
  // No storage: it lasts until the page is left.
}

export const token = () => kept;

export function keep(value) {
  kept = value;
  try {
    if (value) sessionStorage.setItem(PLACE, value);
    else sessionStorage.removeItem(PLACE);
  } catch {
    // As above.
  }
}

/** The form that asks for it. `wrong` says why the last one did not do. */
export function tokenForm(refused, done) {
  const input = h("input.field", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "token-hint",
  });
  const submit = (event) => {
    event.preventDefault();
    keep(input.value.trim());
    done();
  };
  const wrong = kept ? "That token was not accepted." : "";
  return h("form.card.state", { onsubmit: submit, "aria-labelledby": "token-title" },
    h("div.state-icon", {}, icon("key", 22)),
    h("h1", { id: "token-title" }, "This gateway asks for its admin token"),
    h("p", { id: "token-hint" }, refused.code === "loopback_only"
      ? "Without a token the inspector opens only on the machine that runs the gateway. Set THOUGHTLINE_ADMIN_TOKEN there, start it again, and enter the token here."
      : "It is the value of access.admin_token in the configuration, or of THOUGHTLINE_ADMIN_TOKEN. It stays in this tab and is gone when you close it."),
    wrong && h("p.wrong", { role: "alert" }, wrong),
    h("div.row", {},
      h("label.unseen", { for: "token" }, "Admin token"), input,
      h("button.primary", { type: "submit" }, "Open the inspector")),
  );
}
