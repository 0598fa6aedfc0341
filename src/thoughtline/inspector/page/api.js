// The gateway's JSON API: requests, the administrator's token, and what can go wrong.
import { learnServerTime } from "./clock.js";
import { recall, remember } from "./dom.js";
import { withQuery } from "./router.js";

/** The gateway asks for the administrator's token. */
export class AccessDenied extends Error {}
/** The gateway does not answer. */
export class Unreachable extends Error {}
/** There is no such thing, or not any more. */
export class NotFound extends Error {}
/** Any other error of the gateway. */
export class RequestFailed extends Error {}

const get = (path, params, options) => request("GET", path, params, options);
const del = (path, params) => request("DELETE", path, params);

/** Headers that every request carries. */
export function headers() {
  return token() ? { authorization: `Bearer ${token()}` } : {};
}

async function request(method, path, params, { signal } = {}) {
  const sentAt = Date.now() / 1000;
  let response;
  try {
    // A deletion that a person confirmed is sent, also when they leave the page at once.
    const keepalive = method === "DELETE";
    response = await fetch(withQuery(path, params), { method, signal, keepalive, headers: headers(), cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The gateway does not answer.");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response.status, body);
  if (body === null) throw new RequestFailed("The gateway's answer is not JSON. Is something else on this port?");
  learnServerTime(body.now, sentAt, Date.now() / 1000);
  return body;
}

/** The error that an answer stands for. */
export function errorOf(status, body) {
  const message = body?.error?.message ?? `The gateway answered ${status}.`;
  const kind = status === 401 || status === 403 ? AccessDenied : status === 404 ? NotFound : RequestFailed;
  return Object.assign(new kind(message), { status, code: body?.error?.code ?? "" });
}

// -- pages ---------------------------------------------------------------------------------------

export const sessions = (params, options) => get("../api/sessions", params, options);
export const requests = (params, options) => get("../api/requests", params, options);
export const usage = (params, options) => get("../api/usage", params, options);
export const continuity = (params, options) => get("../api/continuity", params, options);
export const cacheEntries = (params, options) => get("../api/cache/reasoning", params, options);

/** Clears entries of the cache; the log stays. `progress` hears of a deletion that takes long. */
export const clearCached = (params, progress) =>
  finished(del("../api/cache/reasoning", params), "cleared", progress);

/** Erases thoughts from the log, for good. */
export const eraseThoughts = (params, progress) =>
  finished(del("../api/log/reasoning", { ...params, confirm: "erase" }), "erased", progress);

/** How much was deleted, once it is: what takes long goes on in the background. */
async function finished(deleting, name, progress) {
  let answer = await deleting;
  if (!answer.deletion) return answer[name];
  while (answer.status === "running") {
    progress?.(answer.done, answer.total);
    await new Promise((wait) => setTimeout(wait, 500));
    answer = await get(`../api/deletions/${encodeURIComponent(answer.deletion)}`);
  }
  if (answer.status !== "done") throw new RequestFailed(answer.error);
  return answer.deleted;
}

export const session = (id, params, options) =>
  get(`../api/sessions/${encodeURIComponent(id)}`, params, options);

export const deleteSession = (id) => del(`../api/sessions/${encodeURIComponent(id)}`);

export const turn = (id, turnId, params, options) =>
  get(`../api/sessions/${encodeURIComponent(id)}/turns/${encodeURIComponent(turnId)}`, params, options);

// -- the admin token ------------------------------------------------------------------------------

const TOKEN_KEY = "thoughtline.token";
let stored = recall("sessionStorage", TOKEN_KEY);

/** The token, kept for this tab only. */
export const token = () => stored;

export function setToken(value) {
  stored = value;
  remember("sessionStorage", TOKEN_KEY, value);
}
