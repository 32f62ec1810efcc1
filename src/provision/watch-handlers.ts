/** From watch events to keys in the queues: an object that needs no sync, as nearly all in a settled cluster, is neither queued nor remembered. */
import { isDeepStrictEqual } from 'node:util';
import { type HandlerRegistration, Tombstone } from '../kube/cache/informer.ts';
import type { Lister } from '../kube/cache/store.ts';
import type { WorkQueue } from '../kube/queue/work-queue.ts';
import { isPartialClaim, start } from './cache/cached-claim.ts';
import type { ProvisionInformers } from './cache/informers.ts';
import { claimUid, className, namesVolume, requestedProvisioner } from './claim-fields.ts';
import type { ClaimSyncer } from './claim/sync-claim.ts';
import {
  decisiveAnnotationKeys,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
} from './objects.ts';
import type { Provisioner } from './provisioner.ts';
import type { ClaimTraces, DeletionTraces } from './sync-traces.ts';
import { finalizerUpkeep, isLeftUndone, ownerOf, shouldDelete, type VolumeOwnership } from './volume-fields.ts';
import type { SharedStorage } from './volume/deletion-holds.ts';
import type { RecentlySaved } from './volume/save-volume.ts';
import type { VolumeSyncer } from './volume/sync-volume.ts';
import type { ClaimWaits } from './waits.ts';

interface ClaimReaders {
  provisioner: Pick<Provisioner, 'claimAnnotations'>;
  classes: Lister<StorageClass>;
}

/**
 * Whether the next attempt for a claim may differ from the last one because of this change of the claim. Anyone who may
 * write a claim can change its annotations many times a second, which must not cause as many calls to the backend.
 */
export function isDecisiveChange(
  old: PersistentVolumeClaim,
  claim: PersistentVolumeClaim,
  { provisioner, classes }: ClaimReaders,
): boolean {
  const [before, after] = [old.metadata, claim.metadata];
  if (before.deletionTimestamp !== after.deletionTimestamp || old.status?.phase !== claim.status?.phase) return true;
  if (old.spec.volumeName !== claim.spec.volumeName) return true;
  const differs = (key: string): boolean => startOf(before, key) !== startOf(after, key);
  if (decisiveAnnotationKeys.some(differs)) return true;
  // a form that lacks parts differs from a whole one; before the claim is bound nobody can change more of its spec
  if (isPartialClaim(old) || isPartialClaim(claim)) return false;
  if (!isDeepStrictEqual(old.spec, claim.spec)) return true;
  if (provisioner.claimAnnotations === undefined)
    return !isDeepStrictEqual([before.annotations, before.labels], [after.annotations, after.labels]);
  const storageClass = classes.get(className(claim));
  return storageClass !== undefined && provisioner.claimAnnotations(storageClass).some(differs);
}

function startOf({ annotations }: PersistentVolumeClaim['metadata'], key: string): string | undefined {
  const value = annotations?.[key];
  return value === undefined ? undefined : start(value);
}

interface WatchHandlersOptions extends ProvisionInformers, Pick<ClaimReaders, 'provisioner'>, VolumeOwnership {
  addFinalizer: boolean;
  claimQueue: WorkQueue;
  volumeQueue: WorkQueue;
  claimSyncer: ClaimSyncer;
  volumeSyncer: VolumeSyncer;
  /** As in `VolumeSyncerOptions`. */
  sharedStorage: Pick<SharedStorage, 'changed' | 'forget'> | undefined;
  recentlySaved: RecentlySaved;
  waits: Pick<ClaimWaits, 'changed'>;
  /** Undefined: nothing is traced. */
  traces: ClaimTraces | undefined;
  /** Undefined: nothing is traced. */
  deletionTraces: DeletionTraces | undefined;
  resyncMs: number;
}

export class WatchHandlers {
  readonly #options: WatchHandlersOptions;

  constructor(options: WatchHandlersOptions) {
    this.#options = options;
  }

  /** Adds the handlers to the caches; objects cached already are delivered as added. */
  register(): Record<'claims' | 'volumes' | 'classes', HandlerRegistration> {
    const { claims, volumes, classes, resyncMs } = this.#options;
    return {
      claims: claims.addHandler(
        {
          onAdd: (claim) => this.#onClaim(claim),
          onUpdate: (old, claim) => {
            this.#onClaim(claim, old);
            if (claimUid(old) !== claimUid(claim)) this.#onClaimGone(claimUid(old)); // deleted and recreated
          },
          onDelete: (gone) => this.#onClaimGone(claimUid(gone instanceof Tombstone ? gone.object : gone)),
        },
        { resyncMs },
      ),
      volumes: volumes.addHandler(
        {
          onAdd: (volume) => this.#onVolume(volume),
          onUpdate: (old, volume) => this.#onVolume(volume, old),
          onDelete: (gone) => this.#onVolumeGone((gone instanceof Tombstone ? gone.object : gone).metadata.name),
        },
        { resyncMs },
      ),
      classes: classes.addHandler({
        onAdd: ({ metadata }) => this.#options.waits.changed(`class/${metadata.name}`),
        onUpdate: (old, storageClass) => {
          if (!sameClass(old, storageClass)) this.#options.waits.changed(`class/${storageClass.metadata.name}`);
        },
      }),
    };
  }

  /** @param old - the same object at a resync; undefined: the claim is new to us. */
  #onClaim(claim: PersistentVolumeClaim, old?: PersistentVolumeClaim): void {
    const { isKnownProvisioner, claimSyncer, claimQueue, traces } = this.#options;
    const uid = claimUid(claim);
    if (claimNeedsSync(claim, isKnownProvisioner) || claimSyncer.isInProgress(uid)) {
      traces?.seen(claim);
      if (!this.#keepsWaiting(claim, old)) claimSyncer.enqueue(uid);
    } else if (old !== undefined && old !== claim) {
      // `settle` does it, too, but neither during a sync nor for a claim that has no volume and is no longer ours
      claimQueue.forget(uid);
      claimSyncer.settle(uid);
    }
  }

  /**
   * Whether the claim need not be queued for this change: an attempt is under way, or the next one is not due yet, and
   * the change cannot alter its result.
   */
  #keepsWaiting(claim: PersistentVolumeClaim, old: PersistentVolumeClaim | undefined): boolean {
    const uid = claimUid(claim);
    if (old === undefined || old === claim || claimUid(old) !== uid) return false;
    const { claimQueue } = this.#options;
    const { state } = claimQueue.stateOf(uid);
    const wasGivenUp = state === 'absent' && claimQueue.failures(uid) > 0;
    return (
      (state === 'delayed' || state === 'processing' || wasGivenUp) && !isDecisiveChange(old, claim, this.#options)
    );
  }

  #onClaimGone(uid: string): void {
    const { claimSyncer } = this.#options;
    if (claimSyncer.hasRecord(uid)) claimSyncer.enqueue(uid);
    else claimSyncer.settle(uid);
  }

  /** @param old - as for a claim. */
  #onVolume(volume: PersistentVolume, old?: PersistentVolume): void {
    const { addFinalizer, volumeQueue, volumeSyncer, sharedStorage, recentlySaved, deletionTraces } = this.#options;
    const { name } = volume.metadata;
    if (old !== volume) volumeSyncer.volumeEvent(volume);
    recentlySaved.delete(name);
    sharedStorage?.changed(name);
    if (old !== undefined && old !== volume) this.#wakeClaims(old, volume);
    if (volumeNeedsSync(volume, this.#options)) {
      const isOurs = ownerOf(volume, this.#options) === 'ours';
      if (isOurs && shouldDelete(volume, addFinalizer)) deletionTraces?.seen(volume);
      volumeQueue.add(name);
    } else if (old !== undefined && old !== volume) {
      volumeQueue.forget(name);
      sharedStorage?.forget(name);
      deletionTraces?.settled(name);
    }
  }

  #wakeClaims(old: PersistentVolume, { metadata, spec, status }: PersistentVolume): void {
    const { waits } = this.#options;
    const isReplaced = old.metadata.uid !== metadata.uid;
    if (isReplaced) waits.changed(`gone/${metadata.name}`);
    const isSame =
      old.metadata.deletionTimestamp === metadata.deletionTimestamp &&
      old.status?.phase === status?.phase &&
      isDeepStrictEqual(old.spec.claimRef, spec.claimRef);
    if (isReplaced || !isSame) waits.changed(`volume/${metadata.name}`);
  }

  #onVolumeGone(name: string): void {
    const { volumeQueue, volumeSyncer, sharedStorage, recentlySaved, deletionTraces, waits } = this.#options;
    recentlySaved.delete(name);
    waits.changed(`gone/${name}`);
    waits.changed(`volume/${name}`);
    sharedStorage?.changed(name);
    volumeQueue.forget(name);
    volumeSyncer.forget(name);
    deletionTraces?.settled(name);
  }
}

/**
 * Whether a claim has no volume yet and wants one from us. The class is not read: it changes without an event of the
 * claim.
 */
export function claimNeedsSync(claim: PersistentVolumeClaim, isKnownProvisioner: (name: string) => boolean): boolean {
  if (namesVolume(claim)) return false;
  const provisioner = requestedProvisioner(claim);
  return provisioner !== undefined && isKnownProvisioner(provisioner);
}

/** Whether a volume is ours, and its finalizer is to be added or removed, or its storage deleted; or an event is to say why not. */
export function volumeNeedsSync(
  volume: PersistentVolume,
  options: VolumeOwnership & { addFinalizer: boolean },
): boolean {
  const { addFinalizer } = options;
  const owner = ownerOf(volume, options);
  if (owner !== 'ours') return owner === 'contradictory' && isLeftUndone(volume, addFinalizer);
  return finalizerUpkeep(volume, addFinalizer) !== undefined || shouldDelete(volume, addFinalizer);
}

/** Whether attempts with either class do the same. */
function sameClass({ metadata: { uid }, ...old }: StorageClass, { metadata, ...storageClass }: StorageClass): boolean {
  return uid === metadata.uid && isDeepStrictEqual(old, storageClass);
}
