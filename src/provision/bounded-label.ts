import type { Clock } from '../base/clock.ts';

/** Stands for all further values: no object can have this name. */
export const otherValues = '(other)';
/** Values that nothing known has go after this time, in milliseconds: every scraper has seen their last count by then. */
const staleMs = 3_600_000;
/** Max length of a name of an object. */
const maxLength = 253;

/** Which values a label may have, so that those who choose them cannot have any number of series made. */
export class BoundedLabel {
  readonly #isKnown: (value: string) => boolean;
  readonly #maxUnknown: number;
  readonly #clock: Clock;
  /** The values in use, and when each was last used or known. */
  readonly #lastMs = new Map<string, number>();

  /** @param options.maxUnknown - how many values may be in use that are not known. */
  constructor(options: { isKnown: (value: string) => boolean; maxUnknown: number; clock: Clock }) {
    this.#isKnown = options.isKnown;
    this.#maxUnknown = options.maxUnknown;
    this.#clock = options.clock;
  }

  /** The value to count under: the same, or `otherValues` where too many are in use. */
  valueFor(value: string): string {
    if (!this.#mayUse(value)) return otherValues;
    this.#lastMs.set(value, this.#clock.monotonicMs());
    return value;
  }

  /** Drops the values that have been neither used nor known for an hour. @returns them. */
  dropStale(): ReadonlySet<string> {
    const nowMs = this.#clock.monotonicMs();
    const stale = new Set<string>();
    for (const [value, lastMs] of this.#lastMs) {
      if (this.#isKnown(value)) this.#lastMs.set(value, nowMs);
      else if (nowMs - lastMs >= staleMs) {
        stale.add(value);
        this.#lastMs.delete(value);
      }
    }
    return stale;
  }

  #mayUse(value: string): boolean {
    if (this.#lastMs.has(value) || this.#isKnown(value)) return true;
    if (value.length > maxLength) return false;
    let unknown = 0;
    for (const used of this.#lastMs.keys()) if (!this.#isKnown(used)) unknown++;
    return unknown < this.#maxUnknown;
  }
}
