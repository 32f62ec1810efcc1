/** Which PersistentVolumes have certain storage, read live: the last check before anything is deleted. */
import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { CodingChoice } from '../../kube/cache/coding-choice.ts';
import { pagedList, pageSize } from '../../kube/cache/paged-list.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { type PersistentVolume, persistentVolumes } from '../objects.ts';
import type { Recoverable } from '../recoverable.ts';
import type { StorageIndex } from '../volume/storage-index.ts';

export interface StorageHoldersOptions {
  transport: Transport;
  storage: Pick<Recoverable, 'storageKeys' | 'handleKey'>;
  /** Undefined: only the list counts. */
  index?: Pick<StorageIndex, 'find'> | undefined;
  /** Aborts when what is under way is to be abandoned. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}

/** What is looked for in a list, and what it has shown so far; a list that breaks off starts again. */
interface Query {
  readonly name: string | undefined;
  readonly keys: readonly string[];
  /** The volume of the name. */
  named: PersistentVolume | undefined;
  /** Those that have one of the keys. */
  readonly sharing: Set<PersistentVolume>;
  readonly settled: PromiseWithResolvers<void>;
}

/** Lists take at most a tenth of the time, whatever the number of volumes in the cluster. */
const pauseFactor = 9;

/** All queries that come while a list is under way share the next one. */
export class StorageHolders {
  readonly #options: StorageHoldersOptions;
  #waiting: Query[] = [];
  #running = false;

  constructor(options: StorageHoldersOptions) {
    this.#options = options;
  }

  /**
   * The volume that has the name or the storage, of whatever provisioner, as the API server has it after this call began. One that was
   * saved while the volumes were listed is found if the index has it by then.
   *
   * @throws {ApiError} and {TransportError} when the volumes cannot be listed: then nothing is known.
   */
  async find(
    { name, handle }: { name: string; handle: string },
    signal: AbortSignal,
  ): Promise<PersistentVolume | undefined> {
    const { storage, index } = this.#options;
    const keys = [storage.handleKey(handle)];
    const { named, sharing } = await this.#query({ name, keys }, signal);
    const [found] = sharing;
    return found ?? (await index?.find(keys, signal)) ?? named;
  }

  /**
   * The volumes that have one of the keys, of whatever provisioner, as the API server has them after this call began.
   *
   * @throws as `find`.
   */
  async sharing(keys: readonly string[], signal: AbortSignal): Promise<PersistentVolume[]> {
    return [...(await this.#query({ name: undefined, keys }, signal)).sharing];
  }

  async #query(wanted: Pick<Query, 'name' | 'keys'>, signal: AbortSignal): Promise<Query> {
    const query: Query = { ...wanted, named: undefined, sharing: new Set(), settled: Promise.withResolvers() };
    query.settled.promise.catch(() => undefined); // the caller may have stopped waiting
    this.#waiting.push(query);
    if (!this.#running) void this.#run();
    await untilAborted(query.settled.promise, signal);
    return query;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock, abort } = this.#options;
    this.#running = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      const startedMs = clock.monotonicMs();
      try {
        await this.#list(batch);
        for (const { settled } of batch) settled.resolve();
      } catch (error) {
        for (const { settled } of batch) settled.reject(error);
      }
      const pauseMs = (clock.monotonicMs() - startedMs) * pauseFactor;
      await clock.sleep(pauseMs, { signal: abort }).catch(() => undefined);
    }
    this.#running = false;
  }

  async #list(batch: readonly Query[]): Promise<void> {
    const { transport, storage, clock, logger, abort } = this.#options;
    const names = Map.groupBy(batch, ({ name }) => name);
    const keys = byKey(batch);
    await pagedList({
      coding: new CodingChoice({ transport, clock, logger }),
      resource: persistentVolumes,
      resourceVersion: '', // live
      limit: pageSize,
      onStart: () => {
        for (const query of batch) {
          query.named = undefined;
          query.sharing.clear();
        }
      },
      onItem: (item) => {
        const volume = item as PersistentVolume;
        for (const query of names.get(volume.metadata.name) ?? []) query.named = volume;
        for (const key of storage.storageKeys(volume)) {
          for (const query of keys.get(key) ?? []) query.sharing.add(volume);
        }
      },
      signal: abort,
    });
  }
}

function byKey(queries: readonly Query[]): Map<string, Query[]> {
  const found = new Map<string, Query[]>();
  for (const query of queries) {
    for (const key of query.keys) {
      const others = found.get(key);
      if (others === undefined) found.set(key, [query]);
      else others.push(query);
    }
  }
  return found;
}
