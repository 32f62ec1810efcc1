/** What a controller is made of, and how its parts call each other. */
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { warningLogger } from '../base/text-logger.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/client/kube-client.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from '../kube/queue/rate-limiter.ts';
import type { WaitingOrder } from '../kube/queue/waiting-order.ts';
import { WorkQueue } from '../kube/queue/work-queue.ts';
import type { AttemptSteps } from './claim/attempt-steps.ts';
import { claimUid, className } from './claim/claim-facts.ts';
import { ClaimTraces } from './claim/claim-traces.ts';
import type { Flow } from './claim/claim-turns.ts';
import { DeletionTraces } from './volume/deletion-traces.ts';
import { noMetrics } from './controller-metrics.ts';
import { ControllerStatus } from './controller-status.ts';
import { FairOrder } from './claim/fair-order.ts';
import { type ProvisionInformers, provisionInformers, uidIndex } from './cache/informers.ts';
import type { Intent } from './intents/intent.ts';
import { type IntentJournal, noJournal } from './intent-journal/intent-journal.ts';
import { noJournalMetrics } from './intent-journal/journal-metrics.ts';
import { Intents } from './intents/intents.ts';
import { LastErrors } from './claim/last-errors.ts';
import { makeRecovery, type Recovery } from './revoke/make-recovery.ts';
import { makeVolumeStore } from './volume/make-volume-store.ts';
import type { PersistentVolumeClaim } from './objects.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';
import { guardedObserver } from './provision-observer.ts';
import { QuietVolumes } from './volume/quiet-volumes.ts';
import { RecentlySaved } from './volume/recently-saved.ts';
import { isRecoverable } from './recoverable.ts';
import { SlowSet } from './claim/slow-set.ts';
import { storageKeysOf } from './volume/storage-index.ts';
import { storageParts } from './volume/storage-parts.ts';
import { UnrecordedSteps } from './claim/unrecorded-steps.ts';
import { VolumeLog } from './revoke/volume-log.ts';
import { VolumeLogReader } from './revoke/volume-log-reader.ts';
import { ClaimSyncer } from './claim/sync-claim.ts';
import { VolumeSyncer } from './volume/sync-volume.ts';
import type { VolumeStore } from './volume/volume-store.ts';
import { WatchHandlers } from './watch-handlers.ts';

/** Default of `ProvisionControllerOptions.workers`. */
export const defaultWorkers = 4;
/** No class has a longer name. */
const maxNameLength = 253;
const resyncDefaultMs = 900_000;
const maxCallDefaultMs = 300_000;
/** How long the cache of claims may take to show that a claim has its volume, in milliseconds. */
const recentlyServedMs = 300_000;

export interface ControllerParts {
  clock: Clock;
  logger: Logger;
  informers: ProvisionInformers;
  /** Records events unless the caller has given another recorder. */
  ownRecorder: EventRecorder;
  /** That one, or the caller's. */
  recorder: Recorder;
  claimQueue: WorkQueue;
  /** Of the queue of claims. */
  claimOrder: Pick<FairOrder, 'succeeded'>;
  volumeQueue: WorkQueue;
  store: VolumeStore;
  slowSet: SlowSet;
  journal: IntentJournal;
  intents: Intents;
  /** Undefined for a provisioner that is not recoverable. */
  recovery: Recovery | undefined;
  claimSyncer: ClaimSyncer;
  volumeSyncer: VolumeSyncer;
  watchHandlers: WatchHandlers;
  /** What is traced ends unfinished. */
  stopTraces: () => void;
  status: ControllerStatus;
}

/**
 * @param component - what events name as their source.
 * @param running - its signal aborts when what is under way is to be abandoned.
 */
export function makeControllerParts(
  options: ProvisionControllerOptions,
  { component, running }: { component: string; running: { abort: AbortSignal } },
): ControllerParts {
  const { clock = systemClock, logger = warningLogger } = options;
  const queues = new Map<string, WorkQueue>();
  const makeQueue = (
    name: 'claims' | 'volumes' | 'unsavedpvs',
    queueLimiter: RateLimiter,
    order?: WaitingOrder,
  ): WorkQueue => {
    const metrics = options.queueMetrics?.(name);
    const queue = new WorkQueue({ limiter: queueLimiter, clock, metrics, ...(order && { order }) });
    queues.set(name, queue);
    return queue;
  };
  const names = new Set([options.provisionerName, ...(options.additionalProvisionerNames ?? [])]);
  const isKnownProvisioner = (name: string): boolean => names.has(name);
  const { transport, fieldManager = options.provisionerName.slice(0, maxFieldManagerLength) } = options;
  const permit = options.permit ?? options.intentJournal?.permit;
  const client = new KubeClient({ transport, fieldManager, permit });
  const informers =
    options.informers ??
    provisionInformers({
      transport,
      isKnownProvisioner,
      volumeFields: options.volumeFields,
      storageKeys: storageKeysOf(options.provisioner),
      clock,
      logger,
      freeze: options.freezeCache ?? false,
    });
  const events = new KubeClient({ transport, fieldManager });
  const ownRecorder = new EventRecorder({ client: events, component, clock, logger });
  const recorder = options.recorder ?? ownRecorder;
  const limiter = options.limiter ?? defaultLimiter(clock); // one for both queues, as in the original
  const claimOrder = new FairOrder({
    workers: options.workers ?? defaultWorkers,
    flowOf: (uid) => flowOf(informers.claims.byIndex(uidIndex, uid)[0], intents.get(uid)),
    failures: (uid) => limiter.failures(uid),
    clock,
  });
  const claimQueue = makeQueue('claims', limiter, claimOrder);
  const volumeQueue = makeQueue('volumes', limiter);
  const recentlySaved = new RecentlySaved({ clock });
  const observer = guardedObserver(options.observer, logger);
  const { provisioner, intentJournal = noJournal, maxCallMs = maxCallDefaultMs } = options;
  const metrics = options.journalMetrics ?? noJournalMetrics;
  options.metrics?.followClasses?.((name) => informers.classes.get(name) !== undefined);
  const log: VolumeLog = new VolumeLog({
    storageKeys: (volume) => provisioner.storageKeys?.(volume) ?? [],
    oldestNeeded: () => minOf(intents.neededVersions()),
    oldestStorageNeeded: () => minOf(intents.neededStorageVersions()),
    onHole: () => reader.fill(),
    onRewound: () => intents.lostHistory(),
  });
  const intents: Intents = new Intents({ journal: intentJournal, log, maxCallMs, clock, logger, metrics });
  const reader: VolumeLogReader = new VolumeLogReader({
    log,
    transport,
    neededVersions: () => intents.neededVersions(),
    abort: () => running.abort,
    clock,
    logger,
  });
  const parts = {
    permit,
    provisioner,
    intents,
    observer,
    isKnownProvisioner,
    client,
    recorder,
    metrics: options.metrics ?? noMetrics,
    addFinalizer: options.addFinalizer ?? false,
    clock,
    logger,
    volumes: informers.volumes,
  };
  let recovery: Recovery | undefined;
  const recentlyServed = new RecentlySaved({ clock, lifeMs: recentlyServedMs });
  const store = makeVolumeStore({
    ...parts,
    beforeSave: async (volume, signal) => recovery?.saveGuard.beforeSave(volume, signal),
    onSaved: (volume) => {
      recentlyServed.add(volume.spec.claimRef?.uid ?? '');
      recovery?.saveGuard.saved(volume);
    },
    onTaken: (volume) => recovery?.saveGuard.taken(volume),
    onDropped: (volume) => {
      recovery?.saveGuard.unsaved(volume);
      if (recovery !== undefined) claimQueue.addRateLimited(volume.spec.claimRef?.uid ?? '');
    },
    save: options.save,
    informers,
    recentlySaved,
    makeQueue: (itsLimiter) => makeQueue('unsavedpvs', itsLimiter),
    abort: () => running.abort,
  });
  const slowSet = new SlowSet({ clock });
  const { holders, index, sharedStorage } = storageParts({
    ...parts,
    transport,
    abort: () => running.abort,
    onWake: (name, afterMs) => (afterMs > 0 ? volumeQueue.addAfter(name, afterMs) : volumeQueue.add(name)),
  });
  let steps: AttemptSteps;
  if (isRecoverable(provisioner)) {
    informers.volumes.addTrail(log);
    recovery = makeRecovery({
      ...parts,
      provisioner,
      log,
      reader,
      holders,
      index,
      store,
      claims: informers.claims,
      classes: informers.classes,
      recentlyServed,
      journalMetrics: metrics,
      abort: () => running.abort,
      onReleased: (uid, afterMs) => {
        claimQueue.addAfter(uid, afterMs);
        watchHandlers.settleClaim(uid);
      },
      onServed: (uid) => watchHandlers.settleClaim(uid),
    });
    ({ steps } = recovery);
  } else steps = new UnrecordedSteps({ ...parts, provisioner });
  const { tracer } = options;
  const traces = tracer && new ClaimTraces({ tracer, clock });
  const deletionTraces = tracer && new DeletionTraces({ tracer, clock });
  const volumeSyncer = new VolumeSyncer({
    ...parts,
    sharedStorage,
    traces: deletionTraces,
    lateCallsMs: (name) => intents.lateCallsMs(name),
    quiet: new QuietVolumes({
      ...parts,
      quietInMs: (name) => intents.quietInMs(name),
      onTooEarly: (name, afterMs) => volumeQueue.addAfter(name, afterMs),
    }),
  });
  const lastErrors = options.keepLastErrors === true ? new LastErrors(clock) : undefined;
  const volumeName = options.volumeName ?? ((claim) => `pvc-${claimUid(claim)}`);
  const claimSyncer = new ClaimSyncer({
    ...parts,
    lastErrors,
    traces,
    provisionerName: options.provisionerName,
    claims: informers.claims,
    classes: informers.classes,
    store,
    slowSet,
    volumeName,
    recentlySaved,
    steps,
  });
  const status = new ControllerStatus({
    isKnownProvisioner,
    volumeName,
    claims: () => informers.claims.list(),
    getClass: (name) => informers.classes.get(name),
    lastError: (uid) => lastErrors?.get(uid),
    isUnsaved: (name) => store.isUnsaved(name),
    hasVolume: (name) => informers.volumes.get(name) !== undefined || recentlySaved.has(name),
    intents: () => intents.list(),
    claimQueue,
    queues,
  });
  const watchHandlers: WatchHandlers = new WatchHandlers({
    ...parts,
    informers,
    classes: informers.classes,
    claimQueue,
    volumeQueue,
    claimSyncer,
    volumeSyncer,
    sharedStorage,
    recentlySaved,
    traces,
    deletionTraces,
    resyncMs: options.resyncMs ?? resyncDefaultMs,
  });
  return {
    clock,
    logger,
    informers,
    ownRecorder,
    recorder,
    claimQueue,
    claimOrder,
    volumeQueue,
    store,
    slowSet,
    journal: intentJournal,
    intents,
    recovery,
    claimSyncer,
    volumeSyncer,
    watchHandlers,
    stopTraces: () => {
      traces?.stop();
      deletionTraces?.stop();
    },
    status,
  };
}

/** The flow of a claim; of one that is gone, its intent has the namespace. */
function flowOf(claim: PersistentVolumeClaim | undefined, intent: Intent | undefined): Flow {
  if (claim !== undefined) {
    const name = className(claim);
    return { namespace: claim.metadata.namespace ?? '', className: name.length > maxNameLength ? '' : name };
  }
  return { namespace: intent?.record.claim.namespace ?? '', className: '' };
}

function minOf(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : numbers.reduce((min, each) => Math.min(min, each));
}

function defaultLimiter(clock: Clock): RateLimiter {
  return new MaxOfLimiter([
    new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
    new BucketLimiter({ qps: 10, burst: 100, clock }),
  ]);
}
