import type { Clock, Timer } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import { StatusError } from '../api/status-error.ts';

/** What a `KeyedWorker` needs. */
export interface KeyedWorkerOptions {
  /** For log lines. */
  name: string;
  /** Brings the object of the key one step further. Must be safe to repeat; what it throws is retried with back-off. */
  sync: (key: string) => void;
  clock: Clock;
  logger: Logger;
  /** Delay before the first retry of a key in milliseconds, doubled with each failure in a row. Default 5. */
  backoffBaseMs?: number;
  /** Max delay between retries in milliseconds. Default 1,000,000. */
  backoffMaxMs?: number;
}

/** How long one turn of the event loop may be spent on queued keys, so that requests are served in between. */
const sliceMs = 5;

/**
 * A queue of keys with one worker: a key waits at most once, keys run in the order of arrival, and a key that fails
 * comes back after its own back-off. The sync function is synchronous, as all calls of the in-process client are.
 */
export class KeyedWorker implements Disposable {
  readonly #options: KeyedWorkerOptions;
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #delayed = new Map<string, { dueMs: number; timer: Timer }>();
  #turn: NodeJS.Immediate | undefined;
  #disposed = false;

  constructor(options: KeyedWorkerOptions) {
    this.#options = options;
  }

  /** Queues the key; nothing happens if it waits already or the worker is disposed. */
  add(key: string): void {
    if (this.#disposed) return;
    this.#waiting.add(key);
    this.#turn ??= setImmediate(() => this.#run());
  }

  /** Queues the key after `delayMs` milliseconds, or at the earlier time asked for before. */
  addAfter(key: string, delayMs: number): void {
    if (this.#disposed) return;
    const { clock } = this.#options;
    const dueMs = clock.monotonicMs() + delayMs;
    const planned = this.#delayed.get(key);
    if (planned !== undefined && planned.dueMs <= dueMs) return;
    planned?.timer.cancel();
    const timer = clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueMs, timer });
  }

  /** Drops the key, whether it waits now or later, and its failures. */
  drop(key: string): void {
    this.#waiting.delete(key);
    this.#failures.delete(key);
    this.#delayed.get(key)?.timer.cancel();
    this.#delayed.delete(key);
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    if (this.#turn !== undefined) clearImmediate(this.#turn);
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#waiting.clear();
    this.#delayed.clear();
    this.#failures.clear();
  }

  #run(): void {
    this.#turn = undefined;
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + sliceMs;
    for (const key of this.#waiting) {
      this.#waiting.delete(key);
      this.#syncOne(key);
      if (clock.monotonicMs() >= endMs) break;
    }
    if (this.#waiting.size > 0) this.#turn ??= setImmediate(() => this.#run());
  }

  #syncOne(key: string): void {
    const { name, sync, logger, backoffBaseMs = 5, backoffMaxMs = 1_000_000 } = this.#options;
    try {
      sync(key);
      this.#failures.delete(key);
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const delayMs = Math.min(backoffBaseMs * 2 ** failures, backoffMaxMs);
      const fields = { worker: name, key, attempt: failures + 1, delayMs, err: error };
      // A conflict only says that somebody else was faster.
      if (error instanceof StatusError && error.reason === 'Conflict')
        logger.debug(fields, 'write conflict, will retry');
      else logger.warn(fields, 'sync failed, will retry');
      this.addAfter(key, delayMs);
    }
  }
}
