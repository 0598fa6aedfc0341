// The live feed. One connection for the page, closed while the tab is hidden; it reconnects by itself,
// waiting longer each time, and goes on after the last event it has seen. `outdated` says that what was
// fetched before may not be so any more: of one session, or (none is named) of all.
import { AccessDenied, errorOf, headers } from "./api.js";
import { learnServerTime } from "./clock.js";

const MIN_WAIT = 500;
const MAX_WAIT = 15000;
const MAX_START = 1000;
const MAX_SILENCE = 40000; // the gateway says something each 15 seconds

class Feed extends EventTarget {
  #last = "";
  #tries = 0;
  #abort = null;
  #timer = 0;
  state = "connecting"; // live, waiting, paused, refused

  /** Connects while the tab is visible: a page that nobody sees costs the gateway nothing. */
  start() {
    const follow = () => (document.hidden ? this.pause() : this.open());
    document.addEventListener("visibilitychange", follow);
    addEventListener("online", () => this.open());
    follow();
  }

  pause() {
    this.#stop();
    this.#setState("paused");
  }

  /** Connects now, whatever was planned. */
  open() {
    this.#stop();
    const abort = (this.#abort = new AbortController());
    this.#read(abort.signal).catch((error) => {
      if (abort.signal.aborted) return;
      if (error instanceof AccessDenied) this.#setState("refused");
      else this.#retryLater();
    });
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  #retryLater() {
    const wait = Math.min(MAX_WAIT, MIN_WAIT * 2 ** this.#tries) * (0.75 + Math.random() / 2);
    this.#tries += 1;
    this.#setState("waiting");
    this.#timer = setTimeout(() => this.open(), wait);
  }

  #setState(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state } }));
  }

  async #read(signal) {
    const seen = this.#last ? { "last-event-id": this.#last } : {};
    const answer = await fetch("../api/feed", {
      signal, cache: "no-store", headers: { ...headers(), ...seen, accept: "text/event-stream" },
    });
    if (!answer.ok) throw errorOf(answer.status, await answer.json().catch(() => null));
    this.#tries = 0;
    if (!this.#last) this.#outdate({}); // what happened before is not told
    this.#setState("live");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await this.#unlessSilent(reader.read());
      if (done) throw new Error("the feed ended");
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) this.#dispatch(block);
    }
  }

  /** What was read; a connection that says nothing for too long is dead, whatever the network says. */
  async #unlessSilent(reading) {
    let timer = 0;
    const silence = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("the feed is silent")), MAX_SILENCE)));
    try {
      return await Promise.race([reading, silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  #dispatch(block) {
    let name = "message";
    const data = [];
    for (const line of block.split(/\r?\n/)) {
      const [, field, value] = /^([a-z]*):? ?(.*)$/.exec(line) ?? [];
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.#last = value;
    }
    if (!data.length) return;
    const detail = JSON.parse(data.join("\n"));
    const now = Date.now() / 1000;
    if (name === "hello") learnServerTime(detail.now, now, now + 0.05);
    this.dispatchEvent(new CustomEvent(name, { detail }));
    if (name === "deleted" || name === "reset") this.#outdate(detail);
  }

  #outdate(detail) {
    this.dispatchEvent(new CustomEvent("outdated", { detail }));
  }

  /** Resolves when the feed is connected: what is fetched from then on is kept up to date. Never waits for long. */
  ready() {
    const told = new Promise((resolve) => this.addEventListener("state", resolve, { once: true }));
    return Promise.race([told, new Promise((resolve) => setTimeout(resolve, MAX_START))]);
  }
}

export const feed = new Feed();
