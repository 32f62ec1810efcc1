/** Puts a controller together: each part after those that it needs, which are named where it is built. */
import { type Clock, systemClock } from '../base/clock.ts';
import { warningLogger } from '../base/text-logger.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/client/kube-client.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from '../kube/queue/rate-limiter.ts';
import { WorkQueue } from '../kube/queue/work-queue.ts';
import { provisionInformers, storageIndex, uidIndex } from './cache/informers.ts';
import { VolumeLogReader } from './cache/volume-log-reader.ts';
import { VolumeLog } from './cache/volume-log.ts';
import { claimUid, className } from './claim-fields.ts';
import { type AttemptSteps, UnrecordedSteps } from './claim/attempt-steps.ts';
import { ClaimAttempt } from './claim/claim-attempt.ts';
import { ClaimStates, InfeasibleClaims, MissingClasses, Rescheduler } from './claim/claim-states.ts';
import { FairOrder, type Flow } from './claim/fair-order.ts';
import { RecordedSteps } from './claim/recorded-steps.ts';
import { ClaimSyncer } from './claim/sync-claim.ts';
import { noMetrics } from './controller-metrics.ts';
import { ControllerStatus } from './controller-status.ts';
import { withCures } from './event-reasons.ts';
import { noJournal } from './intent-journal/intent-journal.ts';
import { noJournalMetrics } from './intent-journal/journal-metrics.ts';
import { Intents } from './intents/intents.ts';
import { LastErrors } from './last-errors.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { type Environment, guardedObserver, type ProvisionControllerOptions } from './provision-controller-options.ts';
import type { Provisioner } from './provisioner.ts';
import { isRecoverable, type Recoverable } from './recoverable.ts';
import { DeletionGuard } from './revoke/deletion-guard.ts';
import { RevokeQueue } from './revoke/revoke-queue.ts';
import { Revoker } from './revoke/revoker.ts';
import { SaveGuard } from './revoke/save-guard.ts';
import { ClaimTraces, DeletionTraces } from './sync-traces.ts';
import { ownsSourceOf } from './volume-fields.ts';
import { QuietVolumes, SharedStorage } from './volume/deletion-holds.ts';
import { RecentlySaved } from './volume/save-volume.ts';
import { StorageHolders, StorageIndex, storageKeysOf, UnwantedStorage } from './volume/storage-holders.ts';
import { VolumeSyncer } from './volume/sync-volume.ts';
import { VolumeStore } from './volume/volume-store.ts';
import { ClaimWaits } from './waits.ts';
import { WatchHandlers } from './watch-handlers.ts';

/** Default of `ProvisionControllerOptions.workers`. */
export const defaultWorkers = 4;
const resyncDefaultMs = 900_000;
const maxCallDefaultMs = 300_000;
/** Volumes whose last error is kept. */
const maxVolumeErrors = 5000;
/** Pauses between the tries of a volume that cannot be saved, in milliseconds. */
const savePauses = { baseMs: 5, maxMs: 60_000 };
/** How long the cache of claims may take to show that a claim has its volume, in milliseconds. */
const servedClaimsMs = 300_000;
/** Max length of the name of a class. */
const maxNameLength = 253;

export type ControllerParts = ReturnType<typeof makeControllerParts>;

/**
 * @param component - what events name as their source.
 * @param abort - aborts when what is under way is to be abandoned.
 */
export function makeControllerParts(
  options: ProvisionControllerOptions,
  { component, abort }: { component: string; abort: AbortSignal },
) {
  const { provisionerName, transport, meaningOf, tracer, keepLastErrors = false, addFinalizer = false } = options;
  const { clock = systemClock, logger = warningLogger, metrics = noMetrics, workers = defaultWorkers } = options;
  const { intentJournal: journal = noJournal, journalMetrics = noJournalMetrics } = options;
  const { volumeName = nameOfUid, maxCallMs = maxCallDefaultMs, resyncMs = resyncDefaultMs } = options;
  const provisioner = options.provisioner as Provisioner | Recoverable; // its plans are checked when they are made
  const names = new Set([provisionerName, ...(options.additionalProvisionerNames ?? [])]);
  const isKnownProvisioner = (name: string): boolean => names.has(name);
  const ownsSource = ownsSourceOf(provisioner);
  const storageKeys = storageKeysOf(provisioner);
  const observer = guardedObserver(options.observer, logger);

  // the API server: requests, events, caches
  const { fieldManager = provisionerName.slice(0, maxFieldManagerLength) } = options;
  const permit = options.permit ?? options.intentJournal?.permit;
  const client = new KubeClient({ transport, fieldManager, permit });
  const events = new KubeClient({ transport, fieldManager });
  const ownRecorder = new EventRecorder({ client: events, component, clock, logger });
  const { recorder: bareRecorder = ownRecorder } = options;
  const recorder = meaningOf === undefined ? bareRecorder : withCures(bareRecorder, meaningOf);
  const environment: Environment = { client, permit, recorder, meaningOf, abort, clock, logger };
  const { volumeFields, freezeCache: freeze = false } = options;
  const informers =
    options.informers ??
    provisionInformers({ transport, isKnownProvisioner, ownsSource, storageKeys, volumeFields, freeze, clock, logger });
  const { claims, volumes, classes } = informers;
  const caches = { claims, volumes, classes };
  const owned = { provisioner, isKnownProvisioner, ownsSource, addFinalizer };
  metrics.followClasses?.((name) => classes.get(name) !== undefined);

  // what may be under way at the backend, and what happened to PersistentVolumes meanwhile
  const log = new VolumeLog({ storageKeys: (volume) => storageKeys?.(volume) ?? [] });
  const progress = isRecoverable(provisioner) ? provisioner.progress : undefined;
  const intents = new Intents({ journal, volumeLog: log, maxCallMs, progress, metrics: journalMetrics, clock, logger });

  // the queues
  const { queueMetrics, limiter = defaultLimiter(clock), saveLimiter = new ExponentialLimiter(savePauses) } = options;
  const flowOf = (uid: string): Flow => flowOfClaim(uid, claims.byIndex(uidIndex, uid)[0], intents);
  const claimOrder = new FairOrder({ workers, flowOf, failures: (uid) => limiter.failures(uid), clock });
  const claimQueue = new WorkQueue({ limiter, order: claimOrder, clock, metrics: queueMetrics?.('claims') });
  const volumeQueue = new WorkQueue({ limiter, clock, metrics: queueMetrics?.('volumes') }); // the same limiter, as in the Go sidecar
  const unsavedQueue = new WorkQueue({ limiter: saveLimiter, clock, metrics: queueMetrics?.('unsavedpvs') });

  // what is kept of claims and volumes
  const states = new ClaimStates();
  const waits = new ClaimWaits((uid) => claimQueue.add(uid));
  const infeasibleClaims = new InfeasibleClaims({ clock, states });
  const recentlySaved = new RecentlySaved({ clock });
  const kept = { isShort: keepLastErrors === 'short', meaningOf };
  const lastErrors = keepLastErrors === false ? undefined : new LastErrors(clock, kept);
  const volumeErrors =
    keepLastErrors === false ? undefined : new LastErrors(clock, { ...kept, maxErrors: maxVolumeErrors });
  const traces = tracer && new ClaimTraces({ tracer, provisionerName, volumeName, clock });
  const deletionTraces = tracer && new DeletionTraces({ tracer, provisionerName, clock });

  // which PersistentVolumes have the same storage
  const handleKey = (handle: string): string => (isRecoverable(provisioner) ? provisioner.handleKey(handle) : handle);
  const isIndexed = storageKeys !== undefined && volumes.hasIndex(storageIndex);
  const index = isIndexed ? new StorageIndex({ volumes, storageKeys, client }) : undefined;
  const storage = { storageKeys: (volume: PersistentVolume) => storageKeys?.(volume) ?? [], handleKey };
  const holders = new StorageHolders({ transport, storage, index, abort, clock, logger });
  const comparesStorage = storageKeys !== undefined && provisioner.handlesSharedStorage?.() !== true;
  const sharedStorage = comparesStorage
    ? new SharedStorage({ ...owned, storageKeys, volumes, index, holders, volumeQueue, recorder, clock })
    : undefined;

  // how volumes are created and saved, and what becomes of those that no claim wants
  const saving = { queue: unsavedQueue, claims, volumes, recentlySaved, lastErrors };
  let store: VolumeStore;
  let steps: AttemptSteps;
  let recovery: { revoker: Revoker; revokeQueue: RevokeQueue; recentlyServedClaims: RecentlySaved } | undefined;
  if (isRecoverable(provisioner)) {
    const isElsewhere = (volume: PersistentVolume): boolean => provisioner.isElsewhere?.(volume) === true;
    const recentlyServedClaims = new RecentlySaved({ clock, lifeMs: servedClaimsMs });
    const reader = new VolumeLogReader({ log, transport, abort, clock, logger });
    volumes.addTrail(log);
    const guard = new DeletionGuard({
      intents,
      log,
      reader,
      volumes,
      provisioner,
      isKnownProvisioner,
      index,
      holders,
      client,
      clock,
    });
    const revokeQueue = new RevokeQueue({ intents, clock });
    const saveHooks = new SaveGuard({ intents, guard, revokeQueue, claimQueue, recentlyServedClaims, client, clock });
    store = new VolumeStore(environment, { ...saving, saveHooks, isElsewhere, unwanted: undefined });
    const revoker = new Revoker(environment, {
      queue: revokeQueue,
      intents,
      maxCallMs,
      guard,
      provisioner,
      store,
      claims,
      volumes,
      claimQueue,
      metrics: journalMetrics,
    });
    steps = new RecordedSteps(environment, {
      provisioner,
      intents,
      guard,
      revokeQueue,
      store,
      ...caches,
      recentlyServedClaims,
      isKnownProvisioner,
      addFinalizer,
      waits,
    });
    recovery = { revoker, revokeQueue, recentlyServedClaims };
  } else {
    const unwanted = new UnwantedStorage(environment, { provisioner, observer, holders });
    store = new VolumeStore(environment, { ...saving, saveHooks: undefined, isElsewhere: undefined, unwanted });
    steps = new UnrecordedSteps(environment, { provisioner, states, addFinalizer });
  }

  // the syncs of claims and volumes, and what queues them
  const attempt = new ClaimAttempt(environment, {
    ...owned,
    ...caches,
    provisionerName,
    steps,
    observer,
    recentlySaved,
    waits,
    claimQueue,
    missingClasses: new MissingClasses({ states, client, recorder }),
    rescheduler: new Rescheduler({ states, client, recorder, logger }),
    store,
    infeasibleClaims,
    metrics,
    volumeName,
    lastErrors,
  });
  const claimSyncer = new ClaimSyncer(environment, {
    attempt,
    steps,
    provisioner,
    claims,
    claimQueue,
    claimOrder,
    states,
    waits,
    infeasibleClaims,
    lastErrors,
    intents,
    traces,
  });
  const volumeSyncer = new VolumeSyncer(environment, {
    ...owned,
    observer,
    volumes,
    metrics,
    intents,
    quiet: new QuietVolumes({ intents, volumeQueue, recorder, clock }),
    sharedStorage,
    lastErrors: volumeErrors,
    traces: deletionTraces,
  });
  const watchHandlers = new WatchHandlers({
    ...caches,
    ...owned,
    claimQueue,
    volumeQueue,
    claimSyncer,
    volumeSyncer,
    sharedStorage,
    recentlySaved,
    waits,
    traces,
    deletionTraces,
    resyncMs,
  });
  const status = new ControllerStatus({
    ...caches,
    ...owned,
    volumeName,
    intents,
    store,
    recentlySaved,
    sharedStorage,
    lastErrors,
    volumeErrors,
    claimQueue,
    volumeQueue,
    unsavedQueue,
    clock,
  });
  return {
    informers,
    journal,
    intents,
    claimQueue,
    volumeQueue,
    waits,
    infeasibleClaims,
    store,
    recovery,
    claimSyncer,
    volumeSyncer,
    watchHandlers,
    status,
    recorder,
    ownRecorder,
    clock,
    logger,
    /** What is traced ends unfinished. */
    stopTraces: () => {
      traces?.stop();
      deletionTraces?.stop();
    },
  };
}

function nameOfUid(claim: PersistentVolumeClaim): string {
  return `pvc-${claimUid(claim)}`;
}

/** Whose turn a claim takes. Of one that is gone only its record knows the namespace. */
function flowOfClaim(uid: string, claim: PersistentVolumeClaim | undefined, intents: Pick<Intents, 'get'>): Flow {
  if (claim === undefined) return { namespace: intents.get(uid)?.record.claim.namespace ?? '', className: '' };
  const name = className(claim);
  return { namespace: claim.metadata.namespace ?? '', className: name.length > maxNameLength ? '' : name };
}

function defaultLimiter(clock: Clock): RateLimiter {
  return new MaxOfLimiter([
    new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
    new BucketLimiter({ qps: 10, burst: 100, clock }),
  ]);
}
