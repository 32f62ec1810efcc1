/** The parts of a controller that compare the storage of volumes. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { storageIndex } from '../cache/informers.ts';
import type { PersistentVolume } from '../objects.ts';
import type { Provisioner } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import type { VolumeOwnership } from './owns-volume.ts';
import { SharedStorage, type SharedStorageOptions } from './shared-storage.ts';
import { StorageHolders } from '../revoke/storage-holders.ts';
import { StorageIndex, storageKeysOf } from './storage-index.ts';

export interface StoragePartsOptions extends Pick<
  SharedStorageOptions,
  'recorder' | keyof VolumeOwnership | 'addFinalizer' | 'onWake'
> {
  provisioner: Pick<Provisioner, 'storageKeys' | 'handlesSharedStorage' | 'shouldDelete'> &
    Partial<Pick<Recoverable, 'handleKey'>>;
  volumes: Informer<PersistentVolume>;
  client: KubeClient;
  transport: Transport;
  abort: () => AbortSignal;
  clock: Clock;
  logger: Logger;
}

export interface StorageParts {
  holders: StorageHolders;
  /** Undefined, where the caches were created without one. */
  index: StorageIndex | undefined;
  /** Undefined for a provisioner without `storageKeys`, or that handles shared storage itself. */
  sharedStorage: SharedStorage | undefined;
}

export function storageParts(options: StoragePartsOptions): StorageParts {
  const { provisioner, volumes, client } = options;
  const storageKeys = storageKeysOf(provisioner);
  const keys = storageKeys ?? ((): string[] => []);
  const isIndexed = storageKeys !== undefined && volumes.hasIndex(storageIndex);
  const index = isIndexed ? new StorageIndex({ volumes, storageKeys, client }) : undefined;
  const handleKey = (handle: string): string => provisioner.handleKey?.(handle) ?? handle;
  const holders = new StorageHolders({ ...options, storage: { storageKeys: keys, handleKey }, index });
  if (storageKeys === undefined || provisioner.handlesSharedStorage?.() === true) {
    return { holders, index, sharedStorage: undefined };
  }
  return { holders, index, sharedStorage: new SharedStorage({ ...options, storageKeys, index, holders }) };
}
