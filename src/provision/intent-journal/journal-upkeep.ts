import type { ClusterJournalOptions } from './journal-options.ts';
import type { ShardReader } from './read-shards.ts';
import { isReported, type RecordChanges } from './record-changes.ts';
import type { Shard } from './shard.ts';
import type { ShardHeader } from './shard-header.ts';
import type { ShardSet } from './shard-set.ts';

/** All shards are read this often: others may have changed, or deleted, them, and an operator may want something. In milliseconds. */
const slowPollMs = 60_000;
/** Open records of this process are renewed this often, in milliseconds. */
const renewRecordMs = 3_600_000;
/** How often it is checked whether any is due, in milliseconds. */
const renewEveryMs = 60_000;

export interface JournalUpkeepOptions {
  journal: ClusterJournalOptions;
  /** This process. */
  me: string;
  shards: ShardSet;
  reader: ShardReader;
  changes: RecordChanges;
}

/** What a journal does periodically: it renews its own records, reads what others write, and adopts records of silent writers. */
export class JournalUpkeep {
  readonly #options: JournalUpkeepOptions;
  #renewals = 0;
  #polledAtMs = 0;
  #renewedAtMs = 0;

  constructor(options: JournalUpkeepOptions) {
    this.#options = options;
  }

  /** All shards were just read. */
  wasRead(): void {
    this.#polledAtMs = this.#options.journal.clock.monotonicMs();
  }

  /** One round; to be called again and again. */
  async maintain(): Promise<void> {
    const { me, shards, reader, changes } = this.#options;
    const { clock, exclusive, adoptAfterMs = 30_000, pollMs = 10_000 } = this.#options.journal;
    const nowMs = clock.monotonicMs();
    const entries = shards.entries();
    const isForeign = entries.some(({ writer }) => writer !== me);
    const hasReported = entries.some(isReported);
    const { isDraining } = shards;
    const isAlone = exclusive && !isForeign && !hasReported && !isDraining;
    const everyMs = isForeign || isDraining ? pollMs : slowPollMs;
    if (nowMs - this.#polledAtMs >= everyMs) {
      this.#polledAtMs = nowMs;
      // where nobody else should write, only what a write of our own has not shown to be there still
      const isDue = ({ writtenAtMs }: Shard): boolean => nowMs - writtenAtMs >= slowPollMs;
      // nobody counts as silent while the shards cannot be read; the next write reports why
      await reader
        .poll(nowMs, (shard) => !isAlone || isDue(shard))
        .catch(() => changes.others.restart(clock.monotonicMs()));
    }
    changes.adoptSilent(exclusive ? Infinity : clock.monotonicMs() - adoptAfterMs);
    if (!exclusive && entries.some(({ writer }) => writer === me)) {
      this.#renewals++;
      shards.root.touch(nowMs, { urgent: true });
    }
    if (nowMs - this.#renewedAtMs < renewEveryMs) return;
    this.#renewedAtMs = nowMs;
    for (const shard of shards.all()) shard.renew(me, { dueMs: renewRecordMs, wallMs: clock.wallMs(), nowMs });
  }

  /** Fields of the header that only the first shard has. */
  rootFields(shard: Shard): Partial<ShardHeader> {
    const { me, shards, changes } = this.#options;
    const { exclusive, clock, adoptAfterMs = 30_000 } = this.#options.journal;
    const { count } = shards;
    if (!shards.isRoot(shard)) return {};
    if (exclusive) return { shards: count };
    const sinceMs = clock.monotonicMs() - 10 * adoptAfterMs;
    const { [me]: _own, ...others } = shard.header?.renewals ?? {};
    const kept = Object.entries(others).filter(([writer]) => !changes.others.isSilent(writer, sinceMs));
    return { shards: count, renewals: { ...Object.fromEntries(kept), [me]: this.#renewals } };
  }
}
