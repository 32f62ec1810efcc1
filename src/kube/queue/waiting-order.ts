/** In which order a `WorkQueue` hands out the keys that wait for a worker. */
export interface WaitingOrder {
  /** Keys that wait. */
  readonly size: number;
  /**
   * Monotonic time in milliseconds at which a key that is held back may be taken; undefined: none is held back until a
   * time.
   */
  readonly nextAtMs: number | undefined;
  /** The key waits from now on. Never called for one that waits already, or that was taken and is not done. */
  add(key: string): void;
  /** Removes a key and returns it; undefined when none waits, or none may be processed now. */
  take(): string | undefined;
  /** The key that was taken has been processed. */
  done(key: string): void;
  /** The cause of failures is gone: nothing is held back because of them any more. */
  retryAll(): void;
  /** The queue shuts down: from now on every key that waits may be taken. */
  end(): void;
}

/** First in, first out. */
export class InOrderOfArrival implements WaitingOrder {
  readonly nextAtMs = undefined;
  /** A Set keeps insertion order and takes from the front without moving the rest. */
  readonly #keys = new Set<string>();

  get size(): number {
    return this.#keys.size;
  }

  add(key: string): void {
    this.#keys.add(key);
  }

  take(): string | undefined {
    for (const key of this.#keys) {
      this.#keys.delete(key);
      return key;
    }
    return undefined;
  }

  done(): void {
    // the order does not depend on what is being processed
  }

  retryAll(): void {
    // nothing is ever held back
  }

  end(): void {
    // nothing is ever held back
  }
}

/** A key that becomes ready at a time. */
interface Entry {
  key: string;
  readyAtMs: number;
}

/** Keys by the time they become ready: a binary heap with each key at most once, for the earlier time. */
export class DelayHeap {
  readonly #heap: Entry[] = [];
  readonly #positions = new Map<string, number>();

  get size(): number {
    return this.#heap.length;
  }

  /** Time of the first key, in the caller's milliseconds. */
  get nextAtMs(): number | undefined {
    return this.#heap[0]?.readyAtMs;
  }

  add(key: string, readyAtMs: number): void {
    const position = this.#positions.get(key);
    if (position === undefined) {
      this.#heap.push({ key, readyAtMs });
      this.#positions.set(key, this.#heap.length - 1);
      this.#up(this.#heap.length - 1);
      return;
    }
    const entry = this.#at(position);
    if (readyAtMs >= entry.readyAtMs) return;
    entry.readyAtMs = readyAtMs;
    this.#up(position);
  }

  /** When the key becomes ready; undefined for one that is not here. */
  readyAtMs(key: string): number | undefined {
    const position = this.#positions.get(key);
    return position === undefined ? undefined : this.#at(position).readyAtMs;
  }

  /** All keys, the next one first, the others unordered. */
  get keys(): string[] {
    return this.#heap.map(({ key }) => key);
  }

  /** Takes out the first key if it is ready. */
  takeReady(nowMs: number): string | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.readyAtMs > nowMs) return undefined;
    this.#positions.delete(first.key);
    const last = this.#heap.pop();
    if (last !== undefined && last !== first) {
      this.#heap[0] = last;
      this.#positions.set(last.key, 0);
      this.#down(0);
    }
    return first.key;
  }

  clear(): void {
    this.#heap.length = 0;
    this.#positions.clear();
  }

  #up(start: number): void {
    let position = start;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (this.#at(parent).readyAtMs <= this.#at(position).readyAtMs) return;
      this.#swap(position, parent);
      position = parent;
    }
  }

  #down(start: number): void {
    let position = start;
    for (;;) {
      let smallest = position;
      for (const child of [2 * position + 1, 2 * position + 2]) {
        if (child < this.#heap.length && this.#at(child).readyAtMs < this.#at(smallest).readyAtMs) smallest = child;
      }
      if (smallest === position) return;
      this.#swap(position, smallest);
      position = smallest;
    }
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#at(a), this.#at(b)];
    this.#heap[a] = second;
    this.#heap[b] = first;
    this.#positions.set(second.key, a);
    this.#positions.set(first.key, b);
  }

  #at(position: number): Entry {
    const entry = this.#heap[position];
    if (entry === undefined) throw new RangeError(`no entry at ${position} of ${this.#heap.length}`);
    return entry;
  }
}
