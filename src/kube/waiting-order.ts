/** In which order a `WorkQueue` hands out the keys that wait for a worker. */
export interface WaitingOrder {
  /** Keys that wait. */
  readonly size: number;
  /** When a key may be taken though nothing else happens until then, in monotonic milliseconds; undefined: that will not be. */
  readonly nextAtMs: number | undefined;
  /** The key waits from now on. Never one that waits already, or that was taken and is not done. */
  add(key: string): void;
  /** Takes a key out. @returns undefined when none waits, or none may be processed now. */
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
    // nothing depends on what is processed
  }

  retryAll(): void {
    // nothing is ever held back
  }

  end(): void {
    // nothing is ever held back
  }
}
