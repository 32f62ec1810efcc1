import type { Clock, Timer } from '../../src/base/clock.ts';
import { copyJson } from './json.ts';
import type { Revision } from './revision.ts';
import type { Store } from './store.ts';

/** Removes events a while after their last write, as a real server does. */
export class EventExpiry implements Disposable {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** In the order of their writes, which is the order in which they expire. */
  readonly #due: { revision: Revision; atMs: number }[] = [];
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;

  constructor(options: { store: Store; clock: Clock; ttlMs: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
    for (const revision of this.#store.list('events')) this.#add(revision);
    const subscription = this.#store.onCommit('events', ({ type, revision }) => {
      if (type !== 'DELETED') this.#add(revision);
    });
    this.#unsubscribe = () => subscription.close();
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
    this.#timer?.cancel();
    this.#due.length = 0;
  }

  #add(revision: Revision): void {
    this.#due.push({ revision, atMs: this.#clock.monotonicMs() + this.#ttlMs });
    this.#timer ??= this.#arm();
  }

  #arm(): Timer | undefined {
    const first = this.#due[0];
    if (first === undefined) return undefined;
    return this.#clock.after(Math.max(0, first.atMs - this.#clock.monotonicMs()), () => {
      this.#expire();
      this.#timer = this.#arm();
    });
  }

  #expire(): void {
    const nowMs = this.#clock.monotonicMs();
    const end = this.#due.findIndex(({ atMs }) => atMs > nowMs);
    for (const { revision } of this.#due.splice(0, end === -1 ? this.#due.length : end)) {
      const { namespace, name } = revision;
      // A later write made a newer revision, which has its own entry.
      if (this.#store.get('events', namespace, name) === revision) {
        this.#store.remove('events', copyJson(revision.object));
      }
    }
  }
}
