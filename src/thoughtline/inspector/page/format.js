// Numbers, sizes and times for people.
import { serverNow } from "./clock.js";

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const MOMENT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
const HOUR = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const count = (number) => COUNT.format(number ?? 0);
export const short = (number) => SHORT.format(number ?? 0);
export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 1000) / 10} %`);
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

export const moment = (at) => MOMENT.format(at * 1000);
export const hour = (at) => HOUR.format(at * 1000);
export const day = (at) => DAY.format(at * 1000);

/** How long an exchange took. */
export function took(started, ended) {
  const seconds = Math.max(0, ended - started);
  if (seconds < 0.995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}m ${whole % 60}s`;
}

/** The part of an id that a person can tell from others. */
export function brief(id) {
  return id.length > 14 ? `${id.slice(0, 6)}…${id.slice(-5)}` : id;
}
