/** How volumes are created and saved: the steps of an attempt, the store, and the deletion of volumes that no claim wants any more. */
import type { LastErrors } from './claim/last-errors.ts';
import type { MeaningOf } from './meaning.ts';
import type { AttemptSteps } from './claim/attempt-steps.ts';
import type { ClaimStates } from './claim/claim-states.ts';
import type { ClaimWaits } from './claim/claim-waits.ts';
import { RecordedSteps } from './claim/recorded-steps.ts';
import { UnrecordedSteps } from './claim/unrecorded-steps.ts';
import { uidIndex } from './cache/informers.ts';
import type { ControllerBase } from './controller-base.ts';
import type { ControllerQueues } from './controller-queues.ts';
import type { IntentParts } from './intents/make-intents.ts';
import { isRecoverable } from './recoverable.ts';
import { DeletionGuard } from './revoke/deletion-guard.ts';
import { DeletionProof } from './revoke/deletion-proof.ts';
import { Revoker } from './revoke/revoker.ts';
import { RecentlySaved } from './volume/recently-saved.ts';
import { SaveGuard } from './volume/save-guard.ts';
import type { StorageParts } from './volume/storage-parts.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { UnwantedStorage } from './volume/unwanted-storage.ts';
import { VolumeStore } from './volume/volume-store.ts';

/** How long the cache of claims may take to show that a claim has its volume, in milliseconds. */
const servedClaimsMs = 300_000;

export interface SavingPartsOptions extends ControllerBase, IntentParts, StorageParts {
  /** As of `RevokerOptions`. */
  maxCallMs: number;
  recentlySaved: RecentlySaved;
  states: ClaimStates;
  waits: ClaimWaits;
  /** As of `SaveParts`. */
  meaningOf: MeaningOf | undefined;
  lastErrors: LastErrors | undefined;
  claimQueue: ControllerQueues['claimQueue'];
  unsavedQueue: ControllerQueues['unsavedQueue'];
  /** `ClaimSyncer.settle`. */
  forgetClaimIfDone: (uid: string) => void;
}

export interface SavingParts {
  store: VolumeStore;
  steps: AttemptSteps;
  /** Undefined for a provisioner that is not recoverable. */
  recovery: { saveGuard: SaveGuard; revoker: Revoker } | undefined;
}

export function savingParts(options: SavingPartsOptions): SavingParts {
  const { provisioner, volumes, claims, log, intents, claimQueue, unsavedQueue: queue, forgetClaimIfDone } = options;
  const claimsByUid = (uid: string): PersistentVolumeClaim[] => claims.byIndex(uidIndex, uid);
  if (!isRecoverable(provisioner)) {
    const unwanted = new UnwantedStorage({ ...options, provisioner });
    const store = new VolumeStore({ ...options, queue, claimsByUid, saveHooks: () => undefined, unwanted });
    return { store, steps: new UnrecordedSteps({ ...options, provisioner }), recovery: undefined };
  }
  volumes.addTrail(log);
  const isElsewhere = (volume: PersistentVolume): boolean => provisioner.isElsewhere?.(volume) === true;
  // a function, as the save guard is created after the store: it needs the revoker, which gives up unsaved volumes in the store
  const store = new VolumeStore({
    ...options,
    queue,
    claimsByUid,
    saveHooks: () => saveGuard,
    isElsewhere,
    unwanted: undefined,
  });
  const recentlyServedClaims = new RecentlySaved({ clock: options.clock, lifeMs: servedClaimsMs });
  const parts = { ...options, provisioner, store, recentlyServedClaims };
  const proof = new DeletionProof({ ...parts, onRewound: () => intents.lostHistory() });
  const guard = new DeletionGuard({ ...parts, proof });
  const revoker = new Revoker({
    ...parts,
    guard,
    metrics: options.journalMetrics,
    onReleased: (uid, afterMs) => {
      claimQueue.addAfter(uid, afterMs);
      forgetClaimIfDone(uid);
    },
  });
  const saveGuard: SaveGuard = new SaveGuard({ ...parts, guard, revoker });
  const steps = new RecordedSteps({ ...parts, guard, revoker });
  return { store, steps, recovery: { saveGuard, revoker } };
}
