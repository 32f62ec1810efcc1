import type { RateLimiter } from '../../../src/kube/queue/rate-limiter.ts';

/** How a sync of a key ended: well (its failures are forgotten), or with a retry after so many milliseconds. */
export type SyncEnd = { end: 'done' } | { end: 'retry'; delayMs: number };

/** Passes everything on to a limiter and keeps what was asked, which shows how each sync ended. */
export class RecordedLimiter implements RateLimiter {
  readonly #limiter: RateLimiter;
  readonly #syncs = new Map<string, SyncEnd[]>();
  readonly #onTurn: () => void;

  constructor(limiter: RateLimiter, onTurn: () => void) {
    this.#limiter = limiter;
    this.#onTurn = onTurn;
  }

  when(key: string): number {
    const delayMs = this.#limiter.when(key);
    this.#note(key, { end: 'retry', delayMs });
    return delayMs;
  }

  forget(key: string): void {
    this.#limiter.forget(key);
    this.#note(key, { end: 'done' });
  }

  failures(key: string): number {
    return this.#limiter.failures(key);
  }

  /** The syncs of a key so far; a sync after which the controller gave up is not among them. */
  syncs(key: string): readonly SyncEnd[] {
    return this.#syncs.get(key) ?? [];
  }

  /** Pauses that were given to a key. */
  delays(key: string): number[] {
    return this.syncs(key).flatMap((sync) => (sync.end === 'retry' ? [sync.delayMs] : []));
  }

  #note(key: string, sync: SyncEnd): void {
    const syncs = this.#syncs.get(key) ?? [];
    syncs.push(sync);
    this.#syncs.set(key, syncs);
    this.#onTurn();
  }
}
