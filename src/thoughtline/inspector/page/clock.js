// The server's clock, so that a timer is right on a machine whose own clock is not, and durations in
// words: the same words as the server's `duration_text` (a test holds both against each other).

/** The label of a running timer. */
export function timerWords(seconds) {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  return `Thinking for ${minutes ? `${minutes}m ${rest}s` : `${rest} second${rest === 1 ? "" : "s"}`}`;
}

let offset = 0; // from this machine's clock to the server's, in seconds
let uncertainty = Infinity;
let clockOffset = 0; // between this machine's wall clock and its monotonic clock

/** Learns the server's time from an answer; the quickest answer is the most exact. */
export function learnServerTime(now, sentAt, receivedAt) {
  const roundTrip = receivedAt - sentAt;
  const measured = receivedAt - performance.now() / 1000;
  if (Math.abs(measured - clockOffset) > 0.5) uncertainty = Infinity; // the machine slept, or its clock was set
  clockOffset = measured;
  if (typeof now !== "number" || !(roundTrip >= 0) || roundTrip > uncertainty * 1.5) return;
  uncertainty = Math.max(roundTrip, 0.01);
  offset = now - (sentAt + roundTrip / 2);
}

/** Seconds since the epoch by the server's clock. */
export function serverNow() {
  return Date.now() / 1000 + offset;
}

const FEED_DELAY = 0.5; // seconds until the feed has told this page that a thought is over

/** Whole seconds of a thought that is still open, at least 1: never more than the number it will end at. */
export function secondsSince(startedAt) {
  return Math.max(1, Math.ceil(serverNow() - startedAt - FEED_DELAY));
}

const timers = new Map();
let interval = 0;
let frozen = false;

/** Calls `tick` four times a second for as long as the element is in the page; `tick(true)`: nobody knows what time it is. */
export function tickWhileConnected(element, tick) {
  timers.set(element, tick);
  interval ||= setInterval(tickAll, 250);
  tick(frozen);
}

/** Stops the timers while the gateway is gone: nobody knows whether what they count goes on. */
export function freezeTimers(gone) {
  frozen = gone;
  tickAll();
}

function tickAll() {
  for (const [element, tick] of timers) {
    if (element.isConnected) tick(frozen);
    else timers.delete(element);
  }
  if (!timers.size) {
    clearInterval(interval);
    interval = 0;
  }
}
