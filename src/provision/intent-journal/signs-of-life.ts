/** Who is alive: what others have written lately, and what the writes of this process show to them. */
import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../../base/permit.ts';
import type { JournalState } from './journal-state.ts';
import type { Shard } from './shard.ts';

/** Which processes have shown signs of life, by our own clock alone: those of machines differ. */
export class Heartbeats {
  readonly #seenAtMs = new Map<string, number>();
  readonly #renewals = new Map<string, number>();
  #own = 0;

  /** This process shows with its next write that it is alive. */
  beat(): void {
    this.#own++;
  }

  /** Another process has changed something, or is seen for the first time. */
  seen(writer: string, nowMs: number): void {
    this.#seenAtMs.set(writer, nowMs);
  }

  /** Records the counters that processes raise while they have open records. */
  observe(renewals: Readonly<Record<string, number>>, nowMs: number): void {
    for (const [writer, count] of Object.entries(renewals)) {
      if (this.#renewals.get(writer) === count) continue;
      this.#renewals.set(writer, count);
      this.seen(writer, nowMs);
    }
  }

  /** Nobody could be seen for a while: everybody counts as alive now. */
  restart(nowMs: number): void {
    for (const writer of this.#seenAtMs.keys()) this.#seenAtMs.set(writer, nowMs);
  }

  isSilent(writer: string, sinceMs: number): boolean {
    return (this.#seenAtMs.get(writer) ?? Infinity) <= sinceMs;
  }

  /** The counters to be written: that of this process, and those there were of others that have not been silent since then. */
  renewals(me: string, former: Readonly<Record<string, number>>, sinceMs: number): Record<string, number> {
    const { [me]: _own, ...others } = former;
    const kept = Object.entries(others).filter(([writer]) => !this.isSilent(writer, sinceMs));
    return { ...Object.fromEntries(kept), [me]: this.#own };
  }
}

/**
 * How old the last own write may be, in milliseconds. Other processes take over the records of one that was silent for longer than
 * `adoptAfterMs`.
 */
const maxSilenceMs = 20_000;

/** What the writes of this process show: that it was not silent for long, and what others have taken over meanwhile. */
export class OwnWrites {
  readonly #options: { state: JournalState; me: string };
  #lastWrite: Moment | undefined;
  /** When the first write after the last silence was sent, in monotonic milliseconds. */
  #sinceMs = -Infinity;
  /** Shards with own records that were not written since then. */
  #stale = new Set<Shard>();

  constructor(options: { state: JournalState; me: string }) {
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

interface WriterPermitOptions {
  journal: { clock: Clock };
  state: JournalState;
  status: { readonly isRefused: boolean; throwIfEnded(): void };
  ownWrites: OwnWrites;
  queue: { wake(): void };
}

/** The permit of a process that works beside others: as long as its writes show what others do. */
export class WriterPermit implements Permit {
  readonly #options: WriterPermitOptions;
  #renewing: Promise<void> | undefined;

  constructor(options: WriterPermitOptions) {
    this.#options = options;
  }

  get isValid(): boolean {
    const { journal, status, ownWrites } = this.#options;
    return ownWrites.isFresh(momentOf(journal.clock)) || status.isRefused;
  }

  async renewed(signal: AbortSignal | undefined): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    await (signal === undefined ? this.#renewing : untilAborted(this.#renewing, signal));
  }

  /** @throws when nothing may be written any more. */
  async #renew(): Promise<void> {
    const { journal, state, status, ownWrites, queue } = this.#options;
    status.throwIfEnded();
    const nowMs = journal.clock.monotonicMs();
    const written = [...new Set([state.root, ...ownWrites.stale])].map((shard) => shard.written(nowMs).promise);
    queue.wake();
    await Promise.all(written);
  }
}
