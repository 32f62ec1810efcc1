import type { Clock } from '../../base/clock.ts';

/** Longer than the journal lets a removed record wait for its write, in milliseconds. */
const lifeMs = 120_000;

/** Names of volumes whose intents were closed lately, with the claims that they were for: their records may not be removed yet. */
export class RecentlyClosed {
  readonly #clock: Clock;
  /** In the order in which they were closed. */
  readonly #names = new Map<string, { uid: string; atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(name: string, uid: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#names.delete(name);
    this.#names.set(name, { uid, atMs: nowMs });
    for (const [each, { atMs }] of this.#names) {
      if (nowMs - atMs < lifeMs) break;
      this.#names.delete(each);
    }
  }

  /** The claim that had the name last. */
  uidOf(name: string): string | undefined {
    return this.#names.get(name)?.uid;
  }

  /** The record of the claim that had the name is removed. */
  forget(name: string): void {
    this.#names.delete(name);
  }
}
