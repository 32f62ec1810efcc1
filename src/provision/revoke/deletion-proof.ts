/** Whether a volume that no claim wants can be proved never to have had a PersistentVolume. Without that nothing is deleted. */
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { orderOf } from '../../kube/client/resource-version.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { type Intent, isNeverSaved } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import { type PersistentVolume, persistentVolumes } from '../objects.ts';
import { hasStorage, type Recoverable } from '../recoverable.ts';
import type { StorageHolders } from './storage-holders.ts';
import type { StorageIndex } from '../volume/storage-index.ts';
import { storedVolume } from '../volume/stored-volume.ts';
import type { SeenVolume, VolumeLog } from './volume-log.ts';
import type { VolumeLogReader } from './volume-log-reader.ts';

/** That the volume has had no PersistentVolume cannot be proved, now or later. */
export class UnprovedError extends Error {
  override readonly name = 'UnprovedError';
}

/** The volume has had a PersistentVolume. */
export class VolumeSeenError extends Error {
  override readonly name = 'VolumeSeenError';
  readonly volume: SeenVolume;

  constructor(name: string, volume: SeenVolume) {
    super(`PersistentVolume ${JSON.stringify(name)} has existed since the volume was begun`);
    this.volume = volume;
  }
}

/** A PersistentVolume has the storage, or the name. */
export class VolumeExistsError extends Error {
  override readonly name = 'VolumeExistsError';
  /** It has the storage; else only the name. */
  readonly holdsStorage: boolean;

  constructor({ metadata: { name } }: PersistentVolume, { holdsStorage }: { holdsStorage: boolean }) {
    super(`PersistentVolume ${JSON.stringify(name)} exists and has the ${holdsStorage ? 'storage' : 'name'}`);
    this.holdsStorage = holdsStorage;
  }
}

/** The history of PersistentVolumes is still being read. */
export class ProofPendingError extends Error {
  override readonly name = 'ProofPendingError';
}

export interface DeletionProofOptions {
  log: VolumeLog;
  reader: Pick<VolumeLogReader, 'reach'>;
  volumes: Lister<PersistentVolume> & { readonly version: string | undefined };
  provisioner: Pick<Recoverable, 'storageKeys' | 'handleKey'>;
  /** Undefined, where the caches were created without one: then all volumes are listed. */
  index: Pick<StorageIndex, 'find'> | undefined;
  holders: Pick<StorageHolders, 'find'>;
  client: KubeClient;
  /** Told when the API server has gone back to an older state. */
  intents: Pick<Intents, 'lostHistory'>;
}

export class DeletionProof {
  readonly #options: DeletionProofOptions;

  constructor(options: DeletionProofOptions) {
    this.#options = options;
  }

  /**
   * Checks that it is proved up to what was read last. Sends nothing. What was lost of the history does not matter where nobody can have
   * created the PersistentVolume; one that was seen does.
   *
   * @param handle - of the storage, where it is known.
   * @throws {VolumeSeenError}, {UnprovedError} and {ProofPendingError} when it is not.
   */
  check(intent: Intent, handle?: string): void {
    const { record, since, firstSince } = intent;
    const { log, volumes, provisioner } = this.#options;
    const { name } = record.volume;
    if (!isNameUnique(name, record.claim.uid)) {
      throw new UnprovedError('its name does not contain the whole UID of the claim: an older volume may have had it');
    }
    const verdict = log.verdict(name, since);
    if (verdict.kind === 'seen') throw new VolumeSeenError(name, verdict.volume);
    if (verdict.kind === 'unknown' && !isNeverSaved(intent)) throw new UnprovedError(verdict.why);
    if (verdict.kind === 'pending') {
      throw new ProofPendingError(
        'which PersistentVolumes there were while no process followed them is still being read',
      );
    }
    if (handle === undefined) return;
    // also what the cache does not show yet
    const imported = log.sawStorage(provisioner.handleKey(handle), Math.min(firstSince, orderOf(volumes.version)));
    if (imported) throw new UnprovedError('a PersistentVolume of another name has had its storage');
  }

  /**
   * Reads live whether a volume has the name or the storage, and what happened until now: then `check` covers everything up to this
   * call.
   *
   * @throws {VolumeExistsError} when one has it, {NotReachedError} when that takes too long, {ApiError} and {TransportError}.
   */
  async checkLive({ record, since }: Intent, handle: string, signal: AbortSignal): Promise<void> {
    const { client, log, reader, intents } = this.#options;
    const { name } = record.volume;
    const before = log.reached;
    // without a limit, so that the API server brings its cache up to date, which is what watches are served from
    const { items, resourceVersion } = await client.listWithVersion<PersistentVolume>(persistentVolumes, {
      fieldSelector: `metadata.name=${name}`,
      signal,
    });
    const now = orderOf(resourceVersion);
    if (now < before || now < since) intents.lostHistory();
    this.#checkHolder(
      items.find(({ metadata }) => metadata.name === name),
      handle,
    );
    await reader.reach(now, signal);
    await this.#checkStorage(name, handle, signal);
  }

  /**
   * Reads live whether a volume has the name, and in the cache whether one has the storage: that is enough for storage that is new.
   *
   * @throws {VolumeExistsError} when one has it, {ApiError} and {TransportError}.
   */
  async checkNew({ record }: Intent, handle: string, signal: AbortSignal): Promise<void> {
    const { name } = record.volume;
    this.#checkHolder(await storedVolume(this.#options.client, name, signal), handle);
    await this.#checkStorage(name, handle, signal);
  }

  async #checkStorage(name: string, handle: string, signal: AbortSignal): Promise<void> {
    const { provisioner, index, holders } = this.#options;
    const found = index?.find([provisioner.handleKey(handle)], signal) ?? holders.find({ name, handle }, signal);
    this.#checkHolder(await found, handle);
  }

  #checkHolder(holder: PersistentVolume | undefined, handle: string): void {
    if (holder === undefined) return;
    throw new VolumeExistsError(holder, { holdsStorage: hasStorage(this.#options.provisioner, holder, handle) });
  }
}

/** Whether a name contains the whole UID: one with only a part of it may have been that of another claim's volume. */
export function isNameUnique(name: string, uid: string): boolean {
  return name.includes(uid) || name.includes(uid.replaceAll('-', ''));
}
