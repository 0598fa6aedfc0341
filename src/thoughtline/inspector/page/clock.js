// How long, in words: the same words as the server's `durations.words` (a test holds both against
// each other), and the server's clock, so that a timer is right on a machine whose own clock is not.

/** `Thought for 23 seconds`; without a number where none is known. */
export function words(seconds, { aborted = false } = {}) {
  const said = aborted ? "Stopped thinking" : "Thought";
  if (seconds === null || seconds === undefined) return said;
  return `${said} ${aborted ? "after" : "for"} ${length(seconds)}`;
}

/** What a running timer says. */
export function running(seconds) {
  return `Thinking for ${length(seconds)}`;
}

function length(seconds) {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  if (minutes) return `${minutes}m ${rest}s`;
  return `${rest} second${rest === 1 ? "" : "s"}`;
}

/** Whole seconds, rounded up, at least 1. */
export function whole(seconds) {
  return Math.max(1, Math.ceil(seconds));
}

let offset = 0;
let doubt = Infinity;
let pace = 0; // between this machine's calendar and its stopwatch

/** Learn the server's time from an answer; the quickest answer is the surest. */
export function learn(now, asked, answered) {
  const trip = answered - asked;
  const apart = answered - performance.now() / 1000;
  if (Math.abs(apart - pace) > 0.5) doubt = Infinity; // it slept, or somebody set its clock
  pace = apart;
  if (typeof now !== "number" || !(trip >= 0) || trip > doubt * 1.5) return;
  doubt = Math.max(trip, 0.01);
  offset = now - (asked + trip / 2);
}

/** Seconds since the epoch by the server's clock. */
export function serverNow() {
  return Date.now() / 1000 + offset;
}

const LATE = 0.5; // seconds until the page has heard that a thought is over

/** Whole seconds of a thought that is not known to be over: never more than the number it ends at. */
export function since(startedAt) {
  return whole(serverNow() - startedAt - LATE);
}

const timers = new Map();
let ticking = 0;

/** Call `tick` four times a second for as long as the element is in the page. */
export function each(element, tick) {
  timers.set(element, tick);
  ticking ||= setInterval(beat, 250);
  tick();
}

function beat() {
  for (const [element, tick] of timers) {
    if (element.isConnected) tick();
    else timers.delete(element);
  }
  if (!timers.size) {
    clearInterval(ticking);
    ticking = 0;
  }
}
