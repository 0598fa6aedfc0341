// The route, in the address: a link, a reload and the back button lead to the same place.
// `#/sessions/ses_1?turn=trn_2` → { path: ["sessions", "ses_1"], query: { turn: "trn_2" } }

export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const segments = path.split("/").filter(Boolean).map(decodeSegment);
  return { path: segments.length ? segments : ["requests"], query: Object.fromEntries(new URLSearchParams(query)) };
}

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Path and query; what is empty is left out, because the gateway refuses empty parameters. */
export function withQuery(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

export const link = (path, query) => withQuery(`#/${path.map(encodeURIComponent).join("/")}`, query);

/** Opens a route; `replace` leaves no entry in the browser's history. */
export function navigate(path, query = {}, { replace = false } = {}) {
  const target = link(path, query);
  if (target === location.hash) return;
  if (!replace) {
    location.hash = target;
    return;
  }
  history.replaceState(null, "", target);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Opens the current route with some of its query changed. */
export function changeQuery(changes, options) {
  const { path, query } = currentRoute();
  navigate(path, { ...query, ...changes }, options);
}
