import { untilAborted } from './abort.ts';

/**
 * Exclusive sections by key: sections of one key run one at a time, in the order of the calls; those of different keys run
 * concurrently. Unused keys take no memory. Locks within this process, not across processes; a section must not enter
 * another one of its own key, which would wait for itself.
 */
export class KeyedLocks {
  /** Of each key the promise that resolves when its last section has ended; none rejects. */
  readonly #tails = new Map<string, Promise<void>>();

  /** Keys in use: what runs or waits. */
  get size(): number {
    return this.#tails.size;
  }

  /**
   * Runs `section` once all earlier ones of the key have ended, whether they succeeded or not.
   *
   * @param options.signal - ends the wait; a section that has begun has to check the signal itself.
   * @returns what the section returns.
   * @throws what the section throws, or the reason of the signal.
   */
  async run<T>(key: string, section: () => T | Promise<T>, options: { signal?: AbortSignal } = {}): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    const earlier = this.#tails.get(key) ?? Promise.resolve();
    const own = Promise.withResolvers<undefined>();
    const tail = earlier.then(() => own.promise); // who gives up while waiting must not let the next one overtake
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    try {
      await (signal === undefined ? earlier : untilAborted(earlier, signal));
      return await section();
    } finally {
      own.resolve(undefined);
    }
  }
}
