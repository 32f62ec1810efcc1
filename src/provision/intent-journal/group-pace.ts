/** With more records than this within the window, a write waits for further ones. */
const loneRecords = 4;
const windowMs = 200;
/** A group of this many records waits for no further ones. */
const fullGroup = 8;

/** When new records are written: a lone one at once, many in groups. */
export class GroupPace {
  readonly #pauseMs: number;
  readonly #recentMs: number[] = [];
  #writtenAtMs = -Infinity;

  /** @param pauseMs - between two groups under load, in milliseconds. */
  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** When the last record arrived, in monotonic milliseconds. */
  get lastRecordMs(): number {
    return this.#recentMs.at(-1) ?? -Infinity;
  }

  onRecord(nowMs: number): void {
    this.#recentMs.push(nowMs);
    if (this.#recentMs.length > loneRecords + 1) this.#recentMs.shift();
  }

  onGroup(nowMs: number): void {
    this.#writtenAtMs = nowMs;
  }

  /**
   * When the next group may be written, in monotonic milliseconds. A small one waits while more records arrive, at most
   * five pauses, so that also on a slow cluster a write holds several.
   *
   * @param waiting - records in the group so far.
   */
  dueMs(nowMs: number, waiting: number): number {
    const [first = -Infinity] = this.#recentMs;
    const isBusy = this.#recentMs.length > loneRecords && nowMs - first < windowMs;
    if (!isBusy) return nowMs;
    const soonestMs = this.#writtenAtMs + this.#pauseMs;
    if (waiting >= fullGroup) return soonestMs;
    const patientMs = Math.max(soonestMs, this.lastRecordMs + this.#pauseMs);
    return Math.min(patientMs, this.#writtenAtMs + 5 * this.#pauseMs);
  }
}
