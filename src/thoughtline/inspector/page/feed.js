// What happens at the gateway, as it happens. One connection for the page, closed while nobody looks;
// it comes back by itself, waiting longer each time, and goes on after the last event it has seen.
import { Refused, address, failure, headers } from "./api.js";
import { learn } from "./clock.js";

const SHORTEST = 500;
const LONGEST = 15000;

export class Feed extends EventTarget {
  #last = "";
  #tries = 0;
  #abort = null;
  #timer = 0;
  state = "connecting"; // live, waiting, paused, refused

  /** Begin, and follow the tab: a page that nobody sees costs the gateway nothing. */
  start() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.open()));
    addEventListener("online", () => this.open());
    if (!document.hidden) this.open();
  }

  pause() {
    this.#stop();
    this.#become("paused");
  }

  /** Connect now, whatever was planned. */
  open() {
    this.#stop();
    const abort = (this.#abort = new AbortController());
    this.#read(abort.signal).catch((error) => {
      if (abort.signal.aborted) return;
      if (error instanceof Refused) this.#become("refused");
      else this.#later();
    });
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  #later() {
    const wait = Math.min(LONGEST, SHORTEST * 2 ** this.#tries) * (0.75 + Math.random() / 2);
    this.#tries += 1;
    this.retryAt = Date.now() + wait;
    this.#become("waiting");
    this.#timer = setTimeout(() => this.open(), wait);
  }

  #become(state) {
    const before = this.state;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, before } }));
  }

  async #read(signal) {
    const seen = this.#last ? { "last-event-id": this.#last } : {};
    const answer = await fetch(address("../api/feed"), {
      signal, cache: "no-store", headers: { ...headers(), ...seen, accept: "text/event-stream" },
    });
    if (!answer.ok) throw failure(answer.status, await answer.json().catch(() => null));
    this.#tries = 0;
    this.#become("live");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the feed ended");
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) this.#tell(block);
    }
  }

  #tell(block) {
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
    if (name === "hello") learn(detail.now, now, now + 0.05);
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

export const feed = new Feed();
