import type { Clock } from '../base/clock.ts';

/** The label of all values beyond the limit: no object can have this name. */
export const otherValues = '(other)';
/** Unknown values are dropped after this time, in milliseconds: scrapers have had time to read the last count. */
const staleMs = 3_600_000;
/** Max length of the name of an object, in characters. */
const maxLength = 253;

/** Limits the values of a label that users choose, so that they cannot create any number of series. */
export class BoundedLabel {
  readonly #isKnown: (value: string) => boolean;
  readonly #maxUnknown: number;
  readonly #clock: Clock;
  /** The values in use, and the monotonic time in milliseconds at which each was last used or known. */
  readonly #lastMs = new Map<string, number>();

  /** @param options.maxUnknown - how many unknown values may be in use at a time. */
  constructor(options: { isKnown: (value: string) => boolean; maxUnknown: number; clock: Clock }) {
    this.#isKnown = options.isKnown;
    this.#maxUnknown = options.maxUnknown;
    this.#clock = options.clock;
  }

  /** The value to count under: the given one, or `otherValues` if too many are in use. */
  valueFor(value: string): string {
    if (!this.#mayUse(value)) return otherValues;
    this.#lastMs.set(value, this.#clock.monotonicMs());
    return value;
  }

  /** Drops the values that have been neither used nor known for an hour, and returns them. */
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
