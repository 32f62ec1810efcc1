/** What a controller is made of, from what all parts share to what the watches call. */
import { uidIndex } from './cache/informers.ts';
import { claimUid, namesVolume } from './claim/claim-fields.ts';
import { ClaimStates } from './claim/claim-states.ts';
import { ClaimTraces } from './claim/claim-traces.ts';
import { ClaimWaits } from './claim/claim-waits.ts';
import { InfeasibleClaims } from './claim/infeasible-claims.ts';
import { LastErrors } from './claim/last-errors.ts';
import { ClaimSyncer } from './claim/sync-claim.ts';
import { type ControllerBase, controllerBase } from './controller-base.ts';
import { type ControllerQueues, controllerQueues } from './controller-queues.ts';
import { ControllerStatus } from './controller-status.ts';
import { noJournal } from './intent-journal/intent-journal.ts';
import type { Intents } from './intents/intents.ts';
import { makeIntents } from './intents/make-intents.ts';
import type { PersistentVolumeClaim } from './objects.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';
import { savingParts, type SavingParts } from './saving-parts.ts';
import { DeletionTraces } from './volume/deletion-traces.ts';
import { QuietVolumes } from './volume/quiet-volumes.ts';
import { RecentlySaved } from './volume/recently-saved.ts';
import { type StorageParts, storageParts } from './volume/storage-parts.ts';
import { VolumeSyncer } from './volume/sync-volume.ts';
import { WatchHandlers } from './watch-handlers.ts';

const resyncDefaultMs = 900_000;
const maxCallDefaultMs = 300_000;
/** Volumes whose last error is kept. */
const maxVolumeErrors = 5000;

export type ControllerParts = ReturnType<typeof makeControllerParts>;

/**
 * @param component - what events name as their source.
 * @param running - its signal aborts when what is under way is to be abandoned.
 */
export function makeControllerParts(
  options: ProvisionControllerOptions,
  { component, running }: { component: string; running: { abort: AbortSignal } },
) {
  const { intentJournal: journal = noJournal, maxCallMs = maxCallDefaultMs, tracer } = options;
  const base = controllerBase(options, { component, abort: () => running.abort });
  const { clock } = base;
  const waits = new ClaimWaits((uid) => claimQueue.add(uid)); // called when it is there
  const intentParts = makeIntents(base, { journal, maxCallMs, onNameFree: (name) => waits.changed(`name/${name}`) });
  const { intents } = intentParts;
  const queues = controllerQueues(options, base, intents);
  const { claimQueue, volumeQueue } = queues;
  const storage = storageParts({
    ...base,
    onWake: (name, afterMs) => (afterMs > 0 ? volumeQueue.addAfter(name, afterMs) : volumeQueue.add(name)),
  });
  const { provisionerName, keepLastErrors = false } = options;
  const kept = { isShort: keepLastErrors === 'short', meaningOf: options.meaningOf };
  const volumeName = options.volumeName ?? ((claim: PersistentVolumeClaim) => `pvc-${claimUid(claim)}`);
  const states = new ClaimStates();
  const shared = {
    ...base,
    states,
    intents,
    recentlySaved: new RecentlySaved({ clock }),
    waits,
    syncAfter: (uid: string, afterMs: number) => claimQueue.addAfter(uid, afterMs),
    infeasibleClaims: new InfeasibleClaims({ clock, states }),
    meaningOf: options.meaningOf,
    lastErrors: keepLastErrors === false ? undefined : new LastErrors(clock, kept),
    volumeErrors: keepLastErrors === false ? undefined : new LastErrors(clock, { ...kept, maxErrors: maxVolumeErrors }),
    traces: tracer && new ClaimTraces({ tracer, provisionerName, volumeName, clock }),
    deletionTraces: tracer && new DeletionTraces({ tracer, provisionerName, clock }),
    volumeName,
  };
  const saving = savingParts({
    maxCallMs,
    ...shared,
    ...intentParts,
    ...storage,
    ...queues,
    forgetClaimIfDone: (uid) => claimSyncer.settle(uid), // the syncer needs the steps, which are made here
  });
  const claimSyncer: ClaimSyncer = new ClaimSyncer({ ...shared, ...saving, ...queues, provisionerName });
  const volumeSyncer = new VolumeSyncer({
    ...shared,
    sharedStorage: storage.sharedStorage,
    lastErrors: shared.volumeErrors,
    traces: shared.deletionTraces,
    lateCallsMs: (name) => intents.lateCallsMs(name),
    quiet: new QuietVolumes({
      ...base,
      quietInMs: (name) => intents.quietInMs(name),
      onTooEarly: (name, afterMs) => volumeQueue.addAfter(name, afterMs),
    }),
  });
  const watchHandlers = new WatchHandlers({
    ...shared,
    ...queues,
    claimSyncer,
    volumeSyncer,
    sharedStorage: storage.sharedStorage,
    resyncMs: options.resyncMs ?? resyncDefaultMs,
  });
  return {
    ...base,
    ...queues,
    ...saving,
    infeasibleClaims: shared.infeasibleClaims,
    journal,
    intents,
    claimSyncer,
    volumeSyncer,
    watchHandlers,
    /** What is traced ends unfinished. */
    stopTraces: () => {
      shared.traces?.stop();
      shared.deletionTraces?.stop();
    },
    status: makeStatus({ ...shared, ...queues, sharedStorage: storage.sharedStorage, store: saving.store }),
  };
}

function makeStatus(
  parts: ControllerBase &
    Pick<ControllerQueues, 'claimQueue' | 'volumeQueue' | 'queues'> & {
      intents: Intents;
      recentlySaved: RecentlySaved;
      lastErrors: LastErrors | undefined;
      volumeErrors: LastErrors | undefined;
      volumeName: NonNullable<ProvisionControllerOptions['volumeName']>;
      sharedStorage: StorageParts['sharedStorage'];
      store: SavingParts['store'];
    },
): ControllerStatus {
  const { claims, classes, volumes, intents, recentlySaved, lastErrors, volumeErrors, sharedStorage, store } = parts;
  return new ControllerStatus({
    ...parts,
    claims: () => claims.list(),
    getClaim: (key) => claims.get(key),
    getVolume: (name) => volumes.get(name),
    needsVolume: (uid) => claims.byIndex(uidIndex, uid).some((claim) => !namesVolume(claim)),
    getClass: (name) => classes.get(name),
    lastError: (uid) => lastErrors?.get(uid),
    isUnsaved: (name) => store.isUnsaved(name),
    hasVolume: (name) => volumes.get(name) !== undefined || recentlySaved.has(name),
    volumes: () => volumes.list(),
    volumeError: (name) => volumeErrors?.get(name),
    quietInMs: (name) => intents.quietInMs(name),
    sharedStorageText: (name) => sharedStorage?.waitText(name),
    intents: () => intents.list(),
    intentOf: (uid) => intents.get(uid),
  });
}
