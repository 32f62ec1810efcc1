/** Finds volumes by their storage, in the cache of volumes and then live. */
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { storageIndex } from '../cache/informers.ts';
import type { PersistentVolume } from '../objects.ts';
import type { Provisioner } from '../provisioner.ts';
import { storageHash } from './storage-hash.ts';
import { storedVolume } from './stored-volume.ts';

export type StorageKeys = (volume: PersistentVolume) => readonly string[];

/** What `provisionInformers` takes for a provisioner. */
export function storageKeysOf(provisioner: Pick<Provisioner, 'storageKeys'>): StorageKeys | undefined {
  if (provisioner.storageKeys === undefined) return undefined;
  return (volume) => provisioner.storageKeys?.(volume) ?? [];
}

export interface StorageIndexOptions {
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
