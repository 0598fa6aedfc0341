// Where we are: in the address, so that a link, a reload and the back button lead to the same place.
// `#/sessions/ses_1?turn=trn_2` → { path: ["sessions", "ses_1"], query: { turn: "trn_2" } }

export function where() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const steps = path.split("/").filter(Boolean).map(plain);
  return { path: steps.length ? steps : ["sessions"], query: Object.fromEntries(new URLSearchParams(query)) };
}

function plain(step) {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

export function link(path, query = {}) {
  const said = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(said).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Go there; `replace` leaves no step to go back to. */
export function go(path, query = {}, { replace = false } = {}) {
  const target = link(path, query);
  if (target === location.hash) return;
  if (!replace) {
    location.hash = target;
    return;
  }
  history.replaceState(null, "", target);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The same place with some of the query changed. */
export function adjust(changes, options) {
  const { path, query } = where();
  go(path, { ...query, ...changes }, options);
}
