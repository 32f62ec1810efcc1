import { type Moment, passedMs } from '../../base/permit.ts';
import type { JournalParts } from './journal-parts.ts';
import type { Shard } from './shard.ts';

/**
 * How old the last own write may be, in milliseconds. Other processes take over the records of one that was silent for longer than
 * `adoptAfterMs`.
 */
const maxSilenceMs = 20_000;

/** What the writes of this process show: that it was not silent for long, and what others have taken over meanwhile. */
export class OwnWrites {
  readonly #options: Pick<JournalParts, 'state' | 'me'>;
  #lastWrite: Moment | undefined;
  /** When the first write after the last silence was sent, in monotonic milliseconds. */
  #sinceMs = -Infinity;
  /** Shards with own records that were not written since then. */
  #stale = new Set<Shard>();

  constructor(options: Pick<JournalParts, 'state' | 'me'>) {
    this.#options = options;
  }

  /** Shards with own records that were not written since the last silence. */
  get stale(): ReadonlySet<Shard> {
    return this.#stale;
  }

  /** Whether a shard was written lately, and since the last silence all that hold records of this process. */
  isFresh(now: Moment): boolean {
    return this.#lastWrite !== undefined && passedMs(this.#lastWrite, now) <= maxSilenceMs && this.#stale.size === 0;
  }

  /** A shard was written. @param sentAt - the moment before the request. */
  add(shard: Shard, sentAt: Moment): void {
    const last = this.#lastWrite;
    const isLater = last === undefined || sentAt.monotonicMs >= last.monotonicMs;
    if (last !== undefined && isLater && passedMs(last, sentAt) > maxSilenceMs) {
      this.#sinceMs = sentAt.monotonicMs;
      const { state, me } = this.#options;
      this.#stale = new Set(state.all().filter((each) => hasOwn(each, me)));
    }
    if (isLater) this.#lastWrite = sentAt;
    if (sentAt.monotonicMs >= this.#sinceMs) this.#stale.delete(shard);
  }
}

function hasOwn(shard: Shard, me: string): boolean {
  for (const { writer } of shard.wanted.values()) if (writer === me) return true;
  return false;
}
