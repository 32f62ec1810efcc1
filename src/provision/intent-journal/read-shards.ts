import type { ClusterJournalOptions } from './journal-options.ts';
import { inParallel } from './settled.ts';
import { Shard } from './shard.ts';
import type { ShardContents } from './shard-contents.ts';
import { headerKey, maxShards, parseHeader } from './shard-header.ts';
import { numbersAtOnce, type ShardSet } from './shard-set.ts';
import type { ShardObject, ShardStorage } from './shard-storage.ts';

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
    await this.readUnread();
    shards.count = await findMore(shards.count, {
      isCounted: shards.root.header?.shards !== undefined,
      read: (each) => storage.read(each),
      found: (each, object) => {
        this.#take(each, object);
        shards.count = Math.max(shards.count, each + 1);
      },
    });
    await this.readUnread();
  }

  /** Reads the shards again that did not exist. Once the first one is ours nobody else begins to use one. */
  async readAbsent(): Promise<void> {
    const { storage, shards, parse, onChanged } = this.#options;
    const absent = shards.all().filter((shard) => shard.object === undefined && !shards.isRoot(shard));
    await inParallel(absent, async (shard) => {
      const object = await storage.read(shard.index);
      const contents = object && parse(object);
      if (contents !== undefined) onChanged(shard, contents);
    });
  }

  /** The process that has written a shard last, as is stored now; undefined where that is not known. */
  async holderOf({ index }: Shard): Promise<string | undefined> {
    const object = await this.#options.storage.read(index);
    const read = parseHeader(object?.entries.get(headerKey));
    return read === 'newer' ? undefined : read.header?.writer;
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
        { namespace: this.#options.journal.namespace, shard: storage.nameOf(number) },
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

/**
 * Looks for shards behind those that are counted: the first shard, which says how many there are, may have been deleted or edited.
 *
 * @param options.isCounted - whether the first shard says how many there are: then one request shows that there are no more.
 * @returns how many numbers are in use. After eight in a row without an object there are no more: a journal grows by at most as
 * many at once.
 */
export async function findMore(
  count: number,
  {
    isCounted,
    read,
    found,
  }: {
    isCounted: boolean;
    read: (number: number) => Promise<ShardObject | undefined>;
    found: (number: number, object: ShardObject) => void;
  },
): Promise<number> {
  for (let from = count, length = isCounted ? 1 : numbersAtOnce; from < maxShards; length = numbersAtOnce) {
    const numbers = Array.from({ length: Math.min(length, maxShards - from) }, (_, index) => from + index);
    const objects = new Map<number, ShardObject>();
    await inParallel(numbers, async (number) => {
      const object = await read(number);
      if (object !== undefined) objects.set(number, object);
    });
    if (objects.size === 0) return from;
    for (const [number, object] of objects) found(number, object);
    from += numbers.length;
  }
  return maxShards;
}
