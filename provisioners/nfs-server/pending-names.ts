import { setTimeout as delay } from 'node:timers/promises';

/** Names that are added within this time, in milliseconds, are worked on together. */
const gatherMs = 100;

/** Names of objects that are to be checked, because they have changed or are to be retried. */
export class PendingNames {
  readonly #retryMs: number;
  #names = new Set<string>();
  #added = Promise.withResolvers<undefined>();

  /** @param options.retryMs - max duration of `wait`, in milliseconds. Default 60,000. */
  constructor({ retryMs = 60_000 }: { retryMs?: number }) {
    this.#retryMs = retryMs;
  }

  /** Ends the wait. Safe to repeat: a name is checked once. */
  add(...names: readonly string[]): void {
    this.putBack(names);
    this.#added.resolve(undefined);
  }

  /** Adds names that could not be checked, without ending the wait: they are retried with the next ones, or after the pause. */
  putBack(names: Iterable<string>): void {
    for (const name of names) this.#names.add(name);
  }

  /** Removes all names and returns them. */
  take(): ReadonlySet<string> {
    const names = this.#names;
    this.#names = new Set();
    return names;
  }

  /** From here on `wait` ends for names that are added. To be called before `take`. */
  begin(): void {
    this.#added = Promise.withResolvers();
  }

  /** Resolves when names were added since `begin`, when it is time to try again, and when the signal aborts. */
  async wait(stop: AbortSignal): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([stop, over.signal]);
    const waiting = delay(this.#retryMs, undefined, { signal }).catch(() => undefined);
    await Promise.race([this.#added.promise, waiting]);
    over.abort();
    await delay(gatherMs, undefined, { signal: stop }).catch(() => undefined);
  }
}
