import { untilAborted } from '../../base/abort.ts';
import { momentOf, type Permit } from '../../base/permit.ts';
import type { JournalParts } from './journal-parts.ts';
import type { OwnWrites } from './own-writes.ts';
import type { WriteQueue } from './write-queue.ts';

export type WriterPermitOptions = JournalParts & { ownWrites: OwnWrites; queue: WriteQueue };

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
