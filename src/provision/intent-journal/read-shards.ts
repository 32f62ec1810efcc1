import type { ClusterJournalOptions } from './journal-options.ts';
import { inParallel } from './settled.ts';
import { Shard } from './shard.ts';
import type { ShardContents } from './shard-contents.ts';
import type { ShardSet } from './shard-set.ts';
import type { ShardObject, ShardStorage } from './shard-storage.ts';

/** After this many numbers in a row without an object there are no more shards: a journal grows by at most as many at once. */
const numbersAtOnce = 8;

export interface ShardReaderOptions {
  journal: ClusterJournalOptions;
  storage: ShardStorage;
  shards: ShardSet;
  /** @returns undefined when only a newer version can read it. */
  parse: (object: ShardObject) => ShardContents | undefined;
  onChanged: (shard: Shard, contents: ShardContents) => void;
}

/** Reads shards outside of writes. Every method throws what the requests throw. */
export class ShardReader {
  readonly #options: ShardReaderOptions;

  constructor(options: ShardReaderOptions) {
    this.#options = options;
  }

  /** Reads what was not read before. May be repeated after a failure. */
  async readAll(): Promise<void> {
    const { storage, shards } = this.#options;
    let number = 0;
    while (!shards.byNumber.has(number)) {
      if (shards.newer.has(number) || !this.#take(number, await storage.read(number))) number++;
    }
    shards.setRoot(number);
    if (shards.root.header === undefined) await this.#findMore();
    await this.readUnread();
  }

  /** Where the first shard, which says how many there are, was deleted: looks for those that are left. */
  async #findMore(): Promise<void> {
    const { storage, shards } = this.#options;
    for (;;) {
      const numbers = Array.from({ length: numbersAtOnce }, (_, index) => shards.count + index);
      const found: [number, ShardObject][] = [];
      await inParallel(numbers, async (number) => {
        const object = await storage.read(number);
        if (object !== undefined) found.push([number, object]);
      });
      if (found.length === 0) return;
      for (const [number, object] of found) this.#take(number, object);
      shards.count += numbersAtOnce;
    }
  }

  async readUnread(): Promise<void> {
    const { storage, shards } = this.#options;
    await inParallel(shards.unread, async (number) => void this.#take(number, await storage.read(number)));
  }

  /** Reads the shards again that are due and not being written, to see what others have changed. */
  async poll(nowMs: number, isDue: (shard: Shard) => boolean): Promise<void> {
    await inParallel(this.#options.shards.all().filter(isDue), async (shard) => {
      if (shard.busy) return;
      shard.busy = true;
      try {
        this.#compare(shard, await this.#options.storage.read(shard.index), nowMs);
      } finally {
        shard.busy = false;
      }
    });
    await this.readUnread();
  }

  #compare(shard: Shard, object: ShardObject | undefined, nowMs: number): void {
    if (object === undefined) {
      if (shard.object !== undefined && shard.wanted.size > 0) shard.touch(nowMs, { urgent: true });
      shard.object = undefined;
    } else if (object.rest.metadata.resourceVersion !== shard.object?.rest.metadata.resourceVersion) {
      const contents = this.#options.parse(object);
      if (contents !== undefined) this.#options.onChanged(shard, contents);
    }
  }

  /** Makes a shard of what was read. @returns whether it can be used. */
  #take(number: number, object: ShardObject | undefined): boolean {
    const { storage, shards, parse, onChanged } = this.#options;
    const { logger, metrics } = this.#options.journal;
    const contents = object && parse(object);
    if (object !== undefined && contents === undefined) {
      shards.newer.add(number);
      metrics?.reported('unreadable');
      logger.error(
        { shard: storage.nameOf(number) },
        'The intent journal is in a newer format and left alone: run the newer version until it is empty, or delete it',
      );
      return false;
    }
    const shard = new Shard(number);
    shards.byNumber.set(number, shard);
    if (contents !== undefined) onChanged(shard, contents);
    return true;
  }
}
