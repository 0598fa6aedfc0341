// The gateway's JSON pages, and what can go wrong with them.
import { learn } from "./clock.js";
import { token } from "./token.js";

/** The gateway wants an administrator. */
export class Refused extends Error {}
/** Nothing answers. */
export class Unreachable extends Error {}
/** It is not there, or not any more. */
export class Missing extends Error {}
/** The gateway answered with something else than what was asked for. */
export class Failed extends Error {}

export const get = (path, params, options) => ask("GET", path, params, options);
export const remove = (path, params) => ask("DELETE", path, params);

/** Headers that every request carries. */
export function headers() {
  return token() ? { authorization: `Bearer ${token()}` } : {};
}

/** Path and query; what is empty is left out, because the gateway refuses empty parameters. */
export function address(path, params = {}) {
  const said = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(said).toString();
  return query ? `${path}?${query}` : path;
}

async function ask(method, path, params, { signal } = {}) {
  const asked = Date.now() / 1000;
  let answer;
  try {
    answer = await fetch(address(path, params), { method, signal, headers: headers(), cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The gateway does not answer.");
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw failure(answer.status, body);
  if (body === null) throw new Failed("The gateway's answer is not JSON. Is something else on this port?");
  learn(body.now, asked, Date.now() / 1000);
  return body;
}

export function failure(status, body) {
  const message = body?.error?.message ?? `The gateway answered ${status}.`;
  const kind = status === 401 || status === 403 ? Refused : status === 404 ? Missing : Failed;
  return Object.assign(new kind(message), { status, code: body?.error?.code ?? "" });
}

// -- pages ---------------------------------------------------------------------------------------

export const sessions = (params, options) => get("../api/sessions", params, options);
export const continuity = (params, options) => get("../api/continuity", params, options);
export const cached = (params, options) => get("../api/cache/reasoning", params, options);
export const forget = (params) => remove("../api/cache/reasoning", params);

export const session = (id, params, options) =>
  get(`../api/sessions/${encodeURIComponent(id)}`, params, options);

export const discard = (id) => remove(`../api/sessions/${encodeURIComponent(id)}`);

export const turn = (id, turnId, params, options) =>
  get(`../api/sessions/${encodeURIComponent(id)}/turns/${encodeURIComponent(turnId)}`, params, options);
