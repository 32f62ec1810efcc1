import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../../base/permit.ts';
import type { Shard } from './shard.ts';
import type { ShardSet } from './shard-set.ts';

/**
 * How old the last own write may be, in milliseconds. Other processes take over the records of one that was silent for longer than
 * `adoptAfterMs`.
 */
const maxSilenceMs = 20_000;

export interface WriterPermitOptions {
  clock: Clock;
  shards: ShardSet;
  /** This process. */
  me: string;
  /** Nothing can be written, which is reported: work goes on without protection. */
  isRefused: () => boolean;
  /** What is to be written at once is written. @throws when nothing may be written any more. */
  wake: () => void;
}

/**
 * The permit of a process that works beside others: it has written one of its shards lately, and since its last silence all that
 * hold records of its own, so that it knows what others have taken over meanwhile.
 */
export class WriterPermit implements Permit {
  readonly #options: WriterPermitOptions;
  #lastWrite: Moment | undefined;
  /** When the first write after the last silence was sent, in monotonic milliseconds. */
  #sinceMs = -Infinity;
  /** Shards with own records that were not written since then. */
  #stale = new Set<Shard>();
  #renewing: Promise<void> | undefined;

  constructor(options: WriterPermitOptions) {
    this.#options = options;
  }

  get isValid(): boolean {
    const { clock, isRefused } = this.#options;
    const isFresh = this.#lastWrite !== undefined && passedMs(this.#lastWrite, momentOf(clock)) <= maxSilenceMs;
    return (isFresh && this.#stale.size === 0) || isRefused();
  }

  /** A shard was written. @param sentAt - the moment before the request. */
  wrote(shard: Shard, sentAt: Moment): void {
    const last = this.#lastWrite;
    const isLater = last === undefined || sentAt.monotonicMs >= last.monotonicMs;
    if (last !== undefined && isLater && passedMs(last, sentAt) > maxSilenceMs) {
      const { shards, me } = this.#options;
      this.#sinceMs = sentAt.monotonicMs;
      this.#stale = new Set(shards.all().filter((each) => hasOwn(each, me)));
    }
    if (isLater) this.#lastWrite = sentAt;
    if (sentAt.monotonicMs >= this.#sinceMs) this.#stale.delete(shard);
  }

  async renewed(signal: AbortSignal | undefined): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    await (signal === undefined ? this.#renewing : untilAborted(this.#renewing, signal));
  }

  /** @throws when nothing may be written any more. */
  async #renew(): Promise<void> {
    const { clock, shards, wake } = this.#options;
    const nowMs = clock.monotonicMs();
    const written: Promise<unknown>[] = [];
    for (const shard of new Set([shards.root, ...this.#stale])) {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      shard.touch(nowMs, { urgent: true });
      shard.waiters.push({ uid: '', resolve, reject });
      written.push(promise);
    }
    wake();
    await Promise.all(written);
  }
}

function hasOwn(shard: Shard, me: string): boolean {
  for (const { writer } of shard.wanted.values()) if (writer === me) return true;
  return false;
}
