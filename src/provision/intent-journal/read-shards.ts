import type { JournalParts } from './journal-parts.ts';
import { numbersAtOnce } from './journal-state.ts';
import type { RecordChanges } from './record-changes.ts';
import { maxShards, parseShard } from './shard-contents.ts';
import type { ShardObject } from './shard-storage.ts';
import type { Shard } from './shard.ts';

/** A shard could not be read: the cause is what the request has thrown. */
export class UnreadError extends Error {
  override readonly name = 'UnreadError';
}

/** Reads shards outside of writes. Every method but `poll` throws what the requests throw. */
export class ShardReader {
  readonly #options: JournalParts & { changes: RecordChanges };

  constructor(options: JournalParts & { changes: RecordChanges }) {
    this.#options = options;
  }

  /** Reads what was not read before. May be repeated after a failure. */
  async readAll(): Promise<void> {
    const { storage, state } = this.#options;
    let number = 0;
    while (!state.byNumber.has(number)) {
      if (state.leftAlone.has(number) || !this.#take(number, await storage.read(number))) number++;
    }
    state.setRoot(number);
    await this.readUnread();
    const count = await findMore(state.count, {
      isCounted: state.root.header?.shards !== undefined,
      read: (each) => storage.read(each),
      found: (each, object) => {
        this.#take(each, object);
        state.countAtLeast(each + 1);
      },
    });
    state.countAtLeast(count);
    await this.readUnread();
  }

  /** Reads again the shards that did not exist. Once the first one is ours nobody else begins to use one. */
  async readAbsent(): Promise<void> {
    const { journal, storage, state, changes } = this.#options;
    const absent = state.all().filter((shard) => shard.object === undefined && !state.isRoot(shard));
    await inParallel(absent, async (shard) => {
      const object = await storage.read(shard.index);
      const contents = object && parseShard(object, journal);
      if (contents !== undefined && !('otherFormat' in contents)) changes.onChanged(shard, contents);
    });
  }

  async readUnread(read = (number: number) => this.#options.storage.read(number)): Promise<void> {
    await inParallel(this.#options.state.unread, async (number) => void this.#take(number, await read(number)));
  }

  /**
   * Reads again the shards that are due and not being written, to see what others have changed.
   *
   * @throws {UnreadError} for a request that failed.
   */
  async poll(nowMs: number, isDue: (shard: Shard) => boolean): Promise<void> {
    const read = async (number: number): Promise<ShardObject | undefined> => {
      try {
        return await this.#options.storage.read(number);
      } catch (error) {
        throw new UnreadError(String(error), { cause: error });
      }
    };
    await inParallel(this.#options.state.all().filter(isDue), async (shard) => {
      if (shard.busy) return;
      shard.acquire();
      try {
        this.#compare(shard, await read(shard.index), nowMs);
      } finally {
        shard.release();
      }
    });
    await this.readUnread(read);
  }

  #compare(shard: Shard, object: ShardObject | undefined, nowMs: number): void {
    if (object === undefined) {
      if (shard.object !== undefined && shard.wanted.size > 0) shard.touch(nowMs);
      shard.vanished();
    } else if (object.rest.metadata.resourceVersion !== shard.object?.rest.metadata.resourceVersion) {
      const contents = parseShard(object, this.#options.journal);
      if (!('otherFormat' in contents)) this.#options.changes.onChanged(shard, contents);
    }
  }

  /** Makes a shard of what was read, unless it became known meanwhile. @returns whether it can be used. */
  #take(number: number, object: ShardObject | undefined): boolean {
    const { journal, state, changes } = this.#options;
    if (state.byNumber.has(number)) return true; // its records are in use by now, and this may be older
    const contents = object && parseShard(object, journal);
    if (contents !== undefined && 'otherFormat' in contents) {
      state.leaveAlone(number);
      changes.onOtherFormat(number, contents);
      return false;
    }
    const shard = state.add(number);
    if (contents !== undefined) changes.onChanged(shard, contents);
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

/**
 * Calls `each` for all items, at most four at a time.
 *
 * @throws its first failure, once none is under way any more: a late one would meet what was done since.
 */
export async function inParallel<T>(items: readonly T[], each: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const item of left) await each(item);
  };
  const onFailure = (error: unknown): void => void failures.push(error);
  await Promise.all(Array.from({ length: 4 }, () => worker().catch(onFailure)));
  if (failures.length > 0) throw failures[0] as Error;
}
