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
