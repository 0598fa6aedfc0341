// Values in words: numbers, sizes, times, and the codes of the log and of providers.
import { serverNow } from "./clock.js";

const COUNT = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const DATE_TIME = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
const HOUR = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const count = (number) => COUNT.format(number ?? 0);
export const compact = (number) => COMPACT.format(number ?? 0);

/** `99.9 %`; all and nothing are said only where it is all or nothing. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  const rounded = Math.round(share * 1000) / 10;
  if (rounded === 100 && share < 1) return "99.9 %";
  if (rounded === 0 && share > 0) return "0.1 %";
  return `${rounded} %`;
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const times = (number) => (number === 1 ? "once" : number === 2 ? "twice" : `${count(number)} times`);

/** `3.1 KB`. */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  const unit = size < 1e6 ? ["KB", 1e3] : ["MB", 1e6];
  return `${(size / unit[1]).toFixed(1)} ${unit[0]}`;
}

/** `now`, `4 min`, `3 h`, `12 Nov`. */
export function ago(at) {
  const seconds = Math.max(0, serverNow() - at);
  if (seconds < 45) return "now";
  if (seconds < 3570) return `${Math.max(1, Math.round(seconds / 60))} min`;
  if (seconds < 84600) return `${Math.round(seconds / 3600)} h`;
  if (seconds < 6.5 * 86400) return `${Math.round(seconds / 86400)} d`;
  return DAY.format(at * 1000);
}

export const dateTime = (at) => DATE_TIME.format(at * 1000);
export const hour = (at) => HOUR.format(at * 1000);
export const day = (at) => DAY.format(at * 1000);

/** How long something took: whole seconds, rounded up as the seconds of thoughts are, so that both fit together. */
export function elapsed(started, ended) {
  const rounded = Math.max(1, Math.ceil(ended - started - 0.0005));
  return rounded < 60 ? `${rounded} s` : `${Math.floor(rounded / 60)}m ${rounded % 60}s`;
}

/** A length in full: `24 ms`, `1.3 s`. */
export function exactly(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 9.95 ? `${seconds.toFixed(1)} s` : elapsed(0, seconds);
}

/** `$0.0042`, `$1.20`; a cost that is not known is a dash. */
export function money(cost) {
  if (cost === null || cost === undefined) return "–";
  if (cost === 0) return "$0";
  if (cost < 0.00005) return "< $0.0001";
  return cost < 0.1 ? `$${cost.toFixed(4)}` : `$${cost.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** What turns cost: `$1.20`, `≈ $1.20` by the price of a family, `$1.20 +` where some have no price, a dash where none has. */
export function moneyOf({ cost, costApproximate, unpriced }) {
  return `${costApproximate ? "≈ " : ""}${money(cost)}${cost !== null && unpriced ? " +" : ""}`;
}

/** The beginning and the end of an id, enough to tell it from others. */
export function shortId(id) {
  return id.length > 14 ? `${id.slice(0, 6)}…${id.slice(-5)}` : id;
}

// -- codes, in words; a code without words is shown as it is --------------------------------------

/** The status of a session or a turn. */
export const STATUSES = {
  running: "running", completed: "completed", failed: "failed", capped: "cut off", aborted: "stopped",
};

/** What became of a request. */
export const OUTCOMES = { ...STATUSES, refused: "refused", passed: "passed through" };

/** The APIs by the names that their makers give them. */
const DIALECTS = { chat: "Chat Completions", responses: "Responses", messages: "Messages", gemini: "Gemini" };

export const dialectWords = (dialect) => DIALECTS[dialect] ?? dialect;

export const statusWords = (name) => OUTCOMES[name] ?? (name || "new");

const CARRIERS = {
  item: "a reasoning item", block: "a thinking block", part: "a thought part", chunk: "a thinking chunk",
  think: "<think> tags in the text", signature: "a thought signature", extra_content: "a signature in extra_content",
  reference: "a reference to an item", placeholder: "the shortest value that is accepted",
};

/** In which shape a thought is sent; carriers without words are names of keys, which people know. */
export const carrierWords = (carrier) => CARRIERS[carrier] ?? carrier;

const VERDICTS = { allow: "given", always: "given for good", deny: "refused" };

export const verdictWords = (verdict) => VERDICTS[verdict] ?? verdict;

const LIMIT = "the answer was as long as the request allows";
const FILTER = "the provider's filter stopped it";
const ENDINGS = {
  length: LIMIT, max_tokens: LIMIT, MAX_TOKENS: LIMIT, max_output_tokens: LIMIT, incomplete: "the provider says that it is incomplete",
  model_context_window_exceeded: "the model's context window is full", pause_turn: "the provider paused the turn",
  content_filter: FILTER, SAFETY: FILTER, PROHIBITED_CONTENT: FILTER, BLOCKLIST: FILTER, SPII: FILTER, IMAGE_SAFETY: FILTER,
  RECITATION: "it would have repeated a text that it was trained on", LANGUAGE: "the model does not speak that language",
  MALFORMED_FUNCTION_CALL: "the model's call of a tool could not be read", UNEXPECTED_TOOL_CALL: "the model called a tool that it was not given",
  MISSING_THOUGHT_SIGNATURE: "a thought signature was missing", OTHER: "the provider does not say why",
  refusal: "the model refused", error: "the provider reported an error", insufficient_system_resource: "the provider had too little capacity", cancelled: "it was cancelled", failed: "the provider does not say why",
};

/** Why a turn ended as it did. */
export const endingWords = (reason) => ENDINGS[reason] ?? reason;
