/** The last checks before storage that was made for a claim is deleted. A volume that anybody may use is never deleted. */
import type { Clock } from '../base/clock.ts';
import { isUnservedResource, NotFoundError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { type ClaimWish, claimWish, type ClaimWishOptions, type WishedVolume } from './claim-wish.ts';
import type { ReportReason } from './intent-journal/journal-metrics.ts';
import type { Intent } from './intent.ts';
import type { Intents } from './intents.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumeClaims } from './objects.ts';
import type { Provisioner } from './provisioner.ts';
import type { Recoverable } from './recoverable.ts';
import type { StorageHolders } from './storage-holders.ts';
import { storedVolume } from './stored-volume.ts';

/** Nothing may be deleted because of this record. */
export class ReportOnlyError extends Error {
  override readonly name = 'ReportOnlyError';
  readonly reason: ReportReason;

  constructor(message: string, reason: ReportReason) {
    super(message);
    this.reason = reason;
  }
}

/** The claim wants the volume after all. */
export class WantedAgainError extends Error {
  override readonly name = 'WantedAgainError';
}

/** A PersistentVolume has the storage, or the name. */
export class VolumeExistsError extends Error {
  override readonly name = 'VolumeExistsError';
  readonly volume: PersistentVolume;
  /** The very storage; else only the name. */
  readonly holdsStorage: boolean;

  constructor(volume: PersistentVolume, { holdsStorage }: { holdsStorage: boolean }) {
    super(
      `PersistentVolume ${JSON.stringify(volume.metadata.name)} exists and has the ${holdsStorage ? 'storage' : 'name'}`,
    );
    this.volume = volume;
    this.holdsStorage = holdsStorage;
  }
}

/** It is too early: a call of another process may still be under way. */
class TooEarlyError extends Error {
  override readonly name = 'TooEarlyError';
}

export interface DeletionGuardOptions {
  clock: Clock;
  intents: Intents;
  provisioner: Provisioner & Recoverable;
  holders: Pick<StorageHolders, 'find'>;
  client: KubeClient;
  isKnownProvisioner: (name: string) => boolean;
}

export class DeletionGuard {
  readonly #options: DeletionGuardOptions;

  constructor(options: DeletionGuardOptions) {
    this.#options = options;
  }

  /**
   * Whether anything may be deleted because of this intent at all.
   *
   * @throws {ReportOnlyError} when it must only be reported.
   */
  checkRecord({ record, reportOnly, saveAttempted }: Intent): void {
    if (reportOnly !== undefined) throw new ReportOnlyError(reportOnly, 'restored');
    if (record.volume.defaults.persistentVolumeReclaimPolicy === 'Retain' && saveAttempted) {
      const text = `StorageClass ${JSON.stringify(record.volume.className)} has reclaimPolicy Retain, and the volume may have been in use`;
      throw new ReportOnlyError(text, 'retain');
    }
  }

  /** What the claim wants, read live. @throws {ApiError} and {TransportError} when that is not known. */
  async wish(record: WishedVolume, signal: AbortSignal): Promise<ClaimWish> {
    const { client, provisioner, isKnownProvisioner } = this.#options;
    const { namespace, name } = record.claim;
    const read = client.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }, { signal });
    const claim = await read.catch((error: unknown) => {
      // any other 404 is that of a proxy, or of a server that is still starting
      if (error instanceof NotFoundError && !isUnservedResource(error)) return undefined;
      throw error;
    });
    if (claim !== undefined && !isClaim(claim, name)) {
      throw new Error(`the API server's answer is not the claim ${namespace}/${name}`);
    }
    const qualifies: ClaimWishOptions['qualifies'] = (it) => provisioner.shouldProvision?.(it, { signal }) ?? true;
    return claimWish(record, claim, { isKnownProvisioner, qualifies });
  }

  /**
   * To be awaited directly before each deletion. Records it, then looks live; when it resolves the storage may be deleted.
   *
   * @param wantedByClaim - the storage is deleted although the claim wants a volume, as it is not fit for it.
   * @throws {ReportOnlyError}, {TooEarlyError}, {WantedAgainError}, {VolumeExistsError}, and whatever a request throws: then
   * nothing may be deleted.
   */
  async beforeDelete(
    intent: Intent,
    handle: string,
    { wantedByClaim, signal }: { wantedByClaim: boolean; signal: AbortSignal },
  ): Promise<void> {
    const { intents, holders, client, provisioner, clock } = this.#options;
    if (handle === '')
      throw new ReportOnlyError('the storage has no handle by which it could be deleted', 'undecidable');
    this.checkRecord(intent);
    if (intent.owner === 'foreign' || intent.deleteNotBeforeMs > clock.monotonicMs()) {
      throw new TooEarlyError('another process may still be creating the storage, it is deleted later');
    }
    await intents.toDelete(intent, handle, signal);
    const { name } = intent.record.volume;
    const holder = await holders.find({ name, handle }, signal);
    // a deletion that was sent must come to its end: whoever wants the volume gets another
    const wish = wantedByClaim || intent.deleteSent ? 'gone' : await this.wish(intent.record, signal);
    const found = holder ?? (await storedVolume(client, name, signal)); // saved since the list began
    if (found !== undefined) {
      throw new VolumeExistsError(found, { holdsStorage: provisioner.holds(found, handle) });
    }
    if (wish === 'wanted' || wish === 'has-it') throw new WantedAgainError('the claim wants the volume after all');
    signal.throwIfAborted();
    intents.checkOpen(intent);
    intent.deleteSent = true;
  }
}

function isClaim({ metadata }: Partial<PersistentVolumeClaim>, name: string): boolean {
  return metadata?.name === name && (metadata.uid ?? '') !== '';
}
