// A long list of which only what can be seen is in the page. Heights are measured as items appear;
// until then they are guessed, and what is above the eye is corrected without a jump.

export class Windowed {
  #items = [];
  #keys = new Map(); // key → index
  #heights = new Map(); // key → pixels
  #offsets = [0];
  #nodes = new Map(); // key → element
  #frame = 0;

  constructor({ scroller, list, guess, key, render, beyond = 500, onrange }) {
    Object.assign(this, { scroller, list, guess, key, render, beyond, onrange });
    this.sizes = new ResizeObserver((entries) => this.#measure(entries));
    this.sizes.observe(scroller);
    this.onscroll = () => (this.#frame ||= requestAnimationFrame(() => this.draw()));
    scroller.addEventListener("scroll", this.onscroll, { passive: true });
  }

  end() {
    cancelAnimationFrame(this.#frame);
    this.sizes.disconnect();
    this.scroller.removeEventListener("scroll", this.onscroll);
  }

  /** Show these. Nodes of items whose `changed` is false stay as they are. */
  set(items, changed = () => true) {
    this.#items = items;
    this.#keys = new Map(items.map((item, index) => [this.key(item), index]));
    for (const [key, node] of this.#nodes) {
      const index = this.#keys.get(key);
      if (index === undefined) this.#drop(key, node);
      else if (changed(items[index])) this.#replace(key, node, index);
      else this.#place(node, index);
    }
    this.#lay();
    this.draw();
  }

  get length() {
    return this.#items.length;
  }

  node(key) {
    return this.#nodes.get(key);
  }

  indexOf(key) {
    return this.#keys.get(key) ?? -1;
  }

  /** Make one item anew, where it is shown. */
  refresh(key, item) {
    const index = this.#keys.get(key);
    if (index === undefined) return;
    this.#items[index] = item;
    const node = this.#nodes.get(key);
    if (node) this.#replace(key, node, index);
  }

  /** Scroll so that an item can be seen, and answer its element. */
  reveal(index, align = "nearest") {
    if (index < 0 || index >= this.#items.length) return null;
    for (let again = 0; again < 3; again += 1) {
      const { top, height } = this.#eye();
      const [from, to] = [this.#offsets[index], this.#offsets[index + 1]];
      if (align === "start") this.#scrollTo(from);
      else if (from < top) this.#scrollTo(from - 8);
      else if (to > top + height) this.#scrollTo(Math.min(from, to - height + 8));
      this.draw();
      this.#measureAll();
    }
    return this.#nodes.get(this.key(this.#items[index]));
  }

  toEnd() {
    for (let again = 0; again < 3; again += 1) {
      this.scroller.scrollTop = this.scroller.scrollHeight;
      this.draw();
      this.#measureAll();
    }
  }

  get atEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < 80;
  }

  draw() {
    this.#frame = 0;
    const { top, height } = this.#eye();
    const first = Math.max(0, this.#at(top - this.beyond));
    const last = Math.min(this.#items.length, this.#at(top + height + this.beyond) + 1);
    const wanted = new Set(this.#items.slice(first, last).map(this.key));
    for (const [key, node] of this.#nodes) if (!wanted.has(key)) this.#drop(key, node);
    let before = null;
    for (let index = first; index < last; index += 1) before = this.#show(index, before);
    this.list.style.paddingTop = `${this.#offsets[first] ?? 0}px`;
    this.list.style.paddingBottom = `${this.#offsets.at(-1) - (this.#offsets[last] ?? 0)}px`;
    this.onrange?.(first, last);
  }

  // -- places ------------------------------------------------------------------------------------

  #eye() {
    const inset = this.list.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    return { top: -inset, height: this.scroller.clientHeight };
  }

  #scrollTo(offset) {
    this.scroller.scrollTop += offset - this.#eye().top;
  }

  #at(offset) {
    let [low, high] = [0, Math.max(0, this.#items.length - 1)];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#offsets[middle + 1] <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #lay() {
    const offsets = (this.#offsets = new Array(this.#items.length + 1));
    offsets[0] = 0;
    this.#items.forEach((item, index) => {
      offsets[index + 1] = offsets[index] + (this.#heights.get(this.key(item)) ?? this.guess);
    });
  }

  // -- elements ----------------------------------------------------------------------------------

  #show(index, before) {
    const key = this.key(this.#items[index]);
    let node = this.#nodes.get(key);
    if (!node) {
      node = this.#make(index);
      this.#nodes.set(key, node);
      this.sizes.observe(node);
    }
    const place = before ? before.nextSibling : this.list.firstChild;
    if (place !== node) this.list.insertBefore(node, place);
    return node;
  }

  #make(index) {
    const node = this.render(this.#items[index], index);
    node.dataset.key = this.key(this.#items[index]);
    this.#place(node, index);
    return node;
  }

  #place(node, index) {
    node.setAttribute("aria-posinset", index + 1);
    node.setAttribute("aria-setsize", this.#items.length);
  }

  #replace(key, old, index) {
    const node = this.#make(index);
    const focused = old.contains(document.activeElement) && document.activeElement.dataset.focus;
    this.sizes.unobserve(old);
    old.replaceWith(node);
    this.#nodes.set(key, node);
    this.sizes.observe(node);
    if (focused) node.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #drop(key, node) {
    this.sizes.unobserve(node);
    if (node.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
    node.remove();
    this.#nodes.delete(key);
  }

  #measureAll() {
    this.#measure([...this.#nodes.values()].map((target) => ({ target })));
  }

  #measure(entries) {
    const { top } = this.#eye();
    let shift = 0;
    let changed = false;
    for (const { target } of entries) {
      const key = target.dataset.key;
      if (target === this.scroller || !target.isConnected || this.#nodes.get(key) !== target) {
        changed ||= target === this.scroller;
        continue;
      }
      const height = target.getBoundingClientRect().height;
      const before = this.#heights.get(key) ?? this.guess;
      if (Math.abs(height - before) < 0.5) continue;
      this.#heights.set(key, height);
      changed = true;
      const index = this.#keys.get(key);
      if (this.#offsets[index + 1] <= top) shift += height - before;
    }
    if (!changed) return;
    this.#lay();
    this.draw();
    if (shift) this.scroller.scrollTop += shift;
  }
}
