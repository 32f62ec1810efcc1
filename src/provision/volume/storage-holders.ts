/** Which PersistentVolumes have certain storage, by the index of the cache or a list, both read live before anything is deleted. */
import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { whenPermitted } from '../../base/permit.ts';
import { CodingChoice } from '../../kube/cache/coding-choice.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { pagedList, pageSize } from '../../kube/cache/paged-list.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { storageHash } from '../cache/cached-volume.ts';
import { storageIndex } from '../cache/informers.ts';
import { liveClaim } from '../claim-fields.ts';
import { type PersistentVolume, persistentVolumes } from '../objects.ts';
import type { Environment, ProvisionObserver } from '../provision-controller-options.ts';
import type { Provisioner } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import { storageName, storedVolume } from './stored-volume.ts';

export type StorageKeys = (volume: PersistentVolume) => readonly string[];

/** What `provisionInformers` takes for a provisioner. */
export function storageKeysOf(provisioner: Pick<Provisioner, 'storageKeys'>): StorageKeys | undefined {
  if (provisioner.storageKeys === undefined) return undefined;
  return (volume) => provisioner.storageKeys?.(volume) ?? [];
}

interface StorageIndexOptions {
  /** Made by `provisionInformers` with the same `storageKeys`. */
  volumes: Pick<Lister<PersistentVolume>, 'byIndex'>;
  storageKeys: StorageKeys;
  client: KubeClient;
}

export class StorageIndex {
  readonly #options: StorageIndexOptions;

  constructor(options: StorageIndexOptions) {
    this.#options = options;
  }

  /** The cached forms of volumes that may have one of the keys: of other storage only by a rare coincidence. */
  candidates(keys: readonly string[]): PersistentVolume[] {
    const hashes = new Set(keys.map(storageHash));
    const found = [...hashes].flatMap((hash) => this.#options.volumes.byIndex(storageIndex, hash));
    return hashes.size === 1 ? found : [...new Set(found)];
  }

  /** A volume that has one of the keys. @throws as `verified`. */
  async find(keys: readonly string[], signal: AbortSignal): Promise<PersistentVolume | undefined> {
    for (const { metadata } of this.candidates(keys)) {
      const found = await this.verified(metadata.name, keys, signal);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** All volumes that have one of the keys. @throws as `verified`. */
  async all(keys: readonly string[], signal: AbortSignal): Promise<PersistentVolume[]> {
    const found: PersistentVolume[] = [];
    for (const { metadata } of this.candidates(keys)) {
      const volume = await this.verified(metadata.name, keys, signal);
      if (volume !== undefined) found.push(volume);
    }
    return found;
  }

  /**
   * The volume of this name as the API server has it, if it has one of the keys.
   *
   * @throws {ApiError} and {TransportError} when it cannot be read.
   */
  async verified(name: string, keys: readonly string[], signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const { client, storageKeys } = this.#options;
    const volume = await storedVolume(client, name, signal);
    return volume !== undefined && storageKeys(volume).some((key) => keys.includes(key)) ? volume : undefined;
  }
}

interface StorageHoldersOptions {
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

interface UnwantedStorageOptions {
  provisioner: Pick<Provisioner, 'delete' | 'storageKeys' | 'handlesSharedStorage'>;
  observer: Pick<Required<ProvisionObserver>, 'onDeleted'>;
  holders: Pick<StorageHolders, 'sharing'>;
}

export class UnwantedStorage {
  readonly #options: Environment & UnwantedStorageOptions;

  constructor(environment: Environment, options: UnwantedStorageOptions) {
    this.#options = { ...environment, ...options };
  }

  /**
   * The claim is read live, then the PersistentVolumes, so that nobody can create one in between; storage that one of them has stays.
   *
   * @param volume - each request that creates it was rejected.
   * @returns whether nothing is to be saved any more; false: the claim is there.
   * @throws whatever a request throws, and `Provisioner.delete`: to be repeated.
   */
  async delete(volume: PersistentVolume, signal: AbortSignal): Promise<boolean> {
    const { provisioner, observer, permit, logger } = this.#options;
    if (await this.#isWanted(volume, signal)) return false;
    const { namespace = '', name: claim = '' } = volume.spec.claimRef ?? {};
    const { name } = volume.metadata;
    const fields = { volume: name, handle: storageName(volume), claim: `${namespace}/${claim}` };
    const holder = await this.#holder(volume, signal);
    if (holder !== undefined) {
      logger.warn(
        { ...fields, holder: holder.metadata.name },
        'The storage is not deleted: a PersistentVolume refers to it',
      );
      return true;
    }
    await whenPermitted(permit, signal, () => provisioner.delete(volume, { signal, permit }));
    observer.onDeleted(volume);
    logger.info(fields, 'Deleted the storage of a volume that could not be saved, as its claim is gone');
    return true;
  }

  async #isWanted({ spec: { claimRef } }: PersistentVolume, signal: AbortSignal): Promise<boolean> {
    const { namespace, name = '', uid } = claimRef ?? {};
    const claim = await liveClaim(this.#options.client, { namespace, name }, signal);
    return claim !== undefined && claim.metadata.uid === uid;
  }

  /** A PersistentVolume of the name, or with the same storage. */
  async #holder(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const { client, provisioner, holders } = this.#options;
    const named = await storedVolume(client, volume.metadata.name, signal);
    const keys = provisioner.handlesSharedStorage?.() === true ? [] : (provisioner.storageKeys?.(volume) ?? []);
    if (named !== undefined || keys.length === 0) return named;
    return (await holders.sharing(keys, signal))[0];
  }
}
