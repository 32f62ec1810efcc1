import type { Revision } from './revision.ts';

/** One committed change. */
export interface Change {
  readonly rv: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Which storage it belongs to, such as `persistentvolumes`. */
  readonly storage: string;
  /** The state after the change; for `DELETED` the last state under the RV of the deletion. */
  readonly revision: Revision;
  /** The state before the change. */
  readonly previous: Revision | undefined;
  readonly atMs: number;
}

/**
 * The latest changes of all resources in the order of their RVs, bounded by number and age. What has left it
 * can be neither watched nor listed any more.
 */
export class History {
  readonly #limit: number;
  readonly #maxAgeMs: number;
  #changes: Change[] = [];
  #start = 0;
  #compactedRv: number;

  constructor(options: { limit: number; maxAgeMs: number; firstRv: number }) {
    this.#limit = options.limit;
    this.#maxAgeMs = options.maxAgeMs;
    this.#compactedRv = options.firstRv;
  }

  /** The smallest RV from which every later change is still known. */
  get compactedRv(): number {
    return this.#compactedRv;
  }

  push(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length - this.#start > this.#limit) this.#drop(this.#start + 1);
    this.trim(change.atMs);
  }

  /** Forgets what is older than the age limit. */
  trim(nowMs: number): void {
    let end = this.#start;
    for (let change = this.#changes[end]; change && change.atMs < nowMs - this.#maxAgeMs; change = this.#changes[end]) {
      end++;
    }
    if (end > this.#start) this.#drop(end);
  }

  /** Forgets every change up to and including `rv`. */
  compact(rv: number): void {
    let end = this.#start;
    for (let change = this.#changes[end]; change && change.rv <= rv; change = this.#changes[end]) end++;
    this.#drop(end);
    this.#compactedRv = Math.max(this.#compactedRv, rv);
  }

  /** The changes after `rv`, oldest first; `rv` must not be below `compactedRv`. */
  since(rv: number): Change[] {
    let low = this.#start;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.rv ?? 0) <= rv) low = middle + 1;
      else high = middle;
    }
    return this.#changes.slice(low);
  }

  #drop(end: number): void {
    const last = this.#changes[end - 1];
    if (end > this.#start && last !== undefined) this.#compactedRv = last.rv;
    const dropped = this.#start;
    this.#start = end;
    // Slicing at each change would cost the whole ring each time; once per half ring is cheap.
    if (this.#start > 64 && this.#start * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#start);
      this.#start = 0;
    } else {
      this.#changes.fill(undefined as unknown as Change, dropped, end);
    }
  }
}
