// A long list of which only what can be seen is in the page. Heights are measured when items are drawn;
// until then they are estimated, and corrections above the viewport do not make the page jump.

export class VirtualList {
  #items = [];
  #keys = new Map(); // key → index
  #heights = new Map(); // key → pixels
  #offsets = [0];
  #nodes = new Map(); // key → element
  #frame = 0;

  constructor({ scroller, list, estimatedHeight, key, render, overscan = 500, onrange }) {
    Object.assign(this, { scroller, list, estimatedHeight, key, render, overscan, onrange });
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

  /** Sets the items. Elements of items for which `changed` is false stay as they are. */
  set(items, changed = () => true) {
    this.#items = items;
    this.#keys = new Map(items.map((item, index) => [this.key(item), index]));
    for (const [key, node] of this.#nodes) {
      const index = this.#keys.get(key);
      if (index === undefined) this.#drop(key, node);
      else if (changed(items[index])) this.#replace(key, node, index);
      else this.#place(node, index);
    }
    this.#layOut();
    this.draw();
  }

  node(key) {
    return this.#nodes.get(key);
  }

  indexOf(key) {
    return this.#keys.get(key) ?? -1;
  }

  /** Scrolls so that an item can be seen; returns its element. */
  reveal(index, align = "nearest") {
    if (index < 0 || index >= this.#items.length) return null;
    for (let pass = 0; pass < 3; pass += 1) {
      const { top, height } = this.#viewport();
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
    for (let pass = 0; pass < 3; pass += 1) {
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
    const { top, height } = this.#viewport();
    const first = Math.max(0, this.#indexAt(top - this.overscan));
    const last = Math.min(this.#items.length, this.#indexAt(top + height + this.overscan) + 1);
    const wanted = new Set(this.#items.slice(first, last).map(this.key));
    for (const [key, node] of this.#nodes) if (!wanted.has(key)) this.#drop(key, node);
    const focused = this.list.contains(document.activeElement) && document.activeElement;
    let before = null;
    for (let index = first; index < last; index += 1) before = this.#show(index, before);
    if (focused && focused !== document.activeElement) focused.focus({ preventScroll: true }); // it was moved
    this.list.style.paddingTop = `${this.#offsets[first] ?? 0}px`;
    this.list.style.paddingBottom = `${this.#offsets.at(-1) - (this.#offsets[last] ?? 0)}px`;
    this.onrange?.(first, last);
  }

  // -- positions ---------------------------------------------------------------------------------

  #viewport() {
    const inset = this.list.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    return { top: -inset, height: this.scroller.clientHeight };
  }

  #scrollTo(offset) {
    this.scroller.scrollTop += offset - this.#viewport().top;
  }

  #indexAt(offset) {
    let [low, high] = [0, Math.max(0, this.#items.length - 1)];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#offsets[middle + 1] <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #layOut() {
    const offsets = (this.#offsets = new Array(this.#items.length + 1));
    offsets[0] = 0;
    this.#items.forEach((item, index) => {
      offsets[index + 1] = offsets[index] + (this.#heights.get(this.key(item)) ?? this.estimatedHeight);
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
    if (!this.scroller.clientHeight) return; // it is hidden, and so is how high things are
    const { top } = this.#viewport();
    let shift = 0;
    let changed = false;
    for (const { target } of entries) {
      const key = target.dataset.key;
      if (target === this.scroller || !target.isConnected || this.#nodes.get(key) !== target) {
        changed ||= target === this.scroller;
        continue;
      }
      const height = target.getBoundingClientRect().height;
      const before = this.#heights.get(key) ?? this.estimatedHeight;
      if (Math.abs(height - before) < 0.5) continue;
      this.#heights.set(key, height);
      changed = true;
      const index = this.#keys.get(key);
      if (this.#offsets[index + 1] <= top) shift += height - before;
    }
    if (!changed) return;
    this.#layOut();
    this.draw();
    if (shift) this.scroller.scrollTop += shift;
  }
}
