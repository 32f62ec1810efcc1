/**
 * Deletes the storage of a volume that can have no PersistentVolume any more: its claim is gone, and the API server has rejected each
 * request that creates it. For a `Recoverable` provisioner the revoker does that, from the record.
 */
import type { Environment } from '../environment.ts';
import { whenPermitted } from '../../base/permit.ts';
import { liveClaim } from '../claim-fields.ts';
import type { PersistentVolume } from '../objects.ts';
import type { ProvisionObserver } from '../provision-observer.ts';
import type { Provisioner } from '../provisioner.ts';
import type { StorageHolders } from '../revoke/storage-holders.ts';
import { storageName, storedVolume } from './stored-volume.ts';

export interface UnwantedStorageOptions {
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
