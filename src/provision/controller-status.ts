import type { Clock } from '../base/clock.ts';
import type { Lister } from '../kube/cache/store.ts';
import type { KeyState, WorkQueue } from '../kube/queue/work-queue.ts';
import { uidIndex } from './cache/informers.ts';
import { namesVolume } from './claim-fields.ts';
import type { IntentRecord } from './intent-journal/intent-journal.ts';
import { type Intent, intentWait } from './intents/intent.ts';
import type { Intents } from './intents/intents.ts';
import type { LastErrors } from './last-errors.ts';
import {
  claimProgress,
  type ClaimProgress,
  type ClaimProgressParts,
  type DeliberateWait,
  releasedVolume,
  type ReleasedVolume,
  type ReleasedVolumeParts,
} from './object-progress.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import type { VolumeOwnership } from './volume-fields.ts';
import type { SharedStorage } from './volume/deletion-holds.ts';
import type { RecentlySaved } from './volume/save-volume.ts';
import type { VolumeStore } from './volume/volume-store.ts';

/** One queue of the controller. */
export interface QueueStatus {
  /** `claims`, `volumes`, or `unsavedpvs`. */
  readonly name: string;
  /** Keys that wait for a worker. */
  readonly waiting: number;
  /** Keys that a worker has. */
  readonly processing: number;
  /** Keys whose next attempt is scheduled, without those of objects that are gone. */
  readonly delayed: number;
  /** How long the oldest sync in progress has been running, in seconds; 0 without one. */
  readonly longestSeconds: number;
}

/** An open record, without its plan. */
export type OpenIntent = Pick<IntentRecord, 'claim' | 'phase' | 'createdAt' | 'reason' | 'problem'> & {
  readonly volume: string;
  /** Why nothing is done about it now; undefined: it does not wait. */
  readonly wait: DeliberateWait | undefined;
};

/** A claim that has no volume, as the caches show it, and how far it is. */
export interface WaitingClaim {
  readonly claim: PersistentVolumeClaim;
  readonly progress: ClaimProgress;
  /** Undefined: it does not exist. */
  readonly storageClass: StorageClass | undefined;
  /** The PersistentVolume that has the name of the claim's volume; undefined: there is none. */
  readonly volume: PersistentVolume | undefined;
}

/** What it reads. */
export interface ControllerStatusParts extends VolumeOwnership {
  claims: Lister<PersistentVolumeClaim>;
  volumes: Pick<Lister<PersistentVolume>, 'list' | 'get'>;
  classes: Pick<Lister<StorageClass>, 'get'>;
  volumeName: (claim: PersistentVolumeClaim) => string;
  addFinalizer: boolean;
  intents: Pick<Intents, 'list' | 'get' | 'heldInMs'>;
  store: Pick<VolumeStore, 'isUnsaved'>;
  recentlySaved: Pick<RecentlySaved, 'has'>;
  sharedStorage: Pick<SharedStorage, 'waitText'> | undefined;
  /** Of claims, by UID; undefined: they are not kept. */
  lastErrors: Pick<LastErrors, 'get'> | undefined;
  /** Of volumes, by name; undefined: they are not kept. */
  volumeErrors: Pick<LastErrors, 'get'> | undefined;
  claimQueue: WorkQueue;
  volumeQueue: WorkQueue;
  unsavedQueue: WorkQueue;
  clock: Clock;
}

/** What a `ProvisionController` does now, for status pages. It is computed when read, and costs nothing otherwise. */
export class ControllerStatus {
  readonly #parts: ControllerStatusParts;

  constructor(parts: ControllerStatusParts) {
    this.#parts = parts;
  }

  /**
   * The claims of this provisioner that have no volume, in no order. Goes through all claims of the cluster: take them in
   * slices. Which claims workers have is read once, with the first claim: so no more claims are in progress than there are workers.
   *
   * @returns undefined in place of each claim that is not waiting, so that the caller can pause there, too.
   */
  *waitingClaims(): Generator<ClaimProgress | undefined> {
    const parts = this.#progressParts();
    for (const claim of this.#parts.claims.list()) yield claimProgress(claim, parts);
  }

  /** One of them. @param key - `NAMESPACE/NAME`. @returns undefined for any other claim. */
  waitingClaim(key: string): WaitingClaim | undefined {
    const { claims, classes, volumes, volumeName } = this.#parts;
    const claim = claims.get(key);
    const progress = claim && claimProgress(claim, this.#progressParts());
    if (claim === undefined || progress === undefined) return undefined;
    const storageClass = classes.get(progress.className);
    return { claim, progress, storageClass, volume: volumes.get(volumeName(claim)) };
  }

  #progressParts(): ClaimProgressParts {
    const { isKnownProvisioner, volumeName, classes, claimQueue, lastErrors, store, intents } = this.#parts;
    return {
      isKnownProvisioner,
      volumeName,
      getClass: (name) => classes.get(name),
      stateOf: statesFromNow(claimQueue),
      failures: (uid) => claimQueue.failures(uid),
      lastError: (uid) => lastErrors?.get(uid),
      isUnsaved: (name) => store.isUnsaved(name),
      hasVolume: (name) => this.#hasVolume(name),
      wait: (uid) => this.#waitOf(intents.get(uid)),
    };
  }

  #hasVolume(name: string): boolean {
    const { volumes, recentlySaved } = this.#parts;
    return volumes.get(name) !== undefined || recentlySaved.has(name);
  }

  /** The volumes whose storage is to be deleted, in no order. Goes through all volumes of the cluster, as `waitingClaims`. */
  *releasedVolumes(): Generator<ReleasedVolume | undefined> {
    const { isKnownProvisioner, ownsSource, addFinalizer } = this.#parts;
    const { volumes, volumeQueue, volumeErrors, intents, sharedStorage } = this.#parts;
    const parts: ReleasedVolumeParts = {
      isKnownProvisioner,
      ownsSource,
      addFinalizer,
      stateOf: statesFromNow(volumeQueue),
      failures: (name) => volumeQueue.failures(name),
      lastError: (name) => volumeErrors?.get(name),
      heldInMs: (name) => intents.heldInMs(name),
      sharedStorageText: (name) => sharedStorage?.waitText(name),
    };
    for (const volume of volumes.list()) yield releasedVolume(volume, parts);
  }

  queues(): QueueStatus[] {
    const { claims, claimQueue, volumeQueue, unsavedQueue, store } = this.#parts;
    const needsVolume = (uid: string): boolean => claims.byIndex(uidIndex, uid).some((claim) => !namesVolume(claim));
    const isThere = (name: string): boolean => this.#hasVolume(name) || store.isUnsaved(name);
    return [
      queueStatus('claims', claimQueue, needsVolume),
      queueStatus('volumes', volumeQueue, isThere),
      queueStatus('unsavedpvs', unsavedQueue, isThere),
    ];
  }

  /** The open records of the intent journal; of a provisioner without one, none. */
  *openIntents(): Generator<OpenIntent> {
    for (const intent of this.#parts.intents.list()) {
      const { claim, phase, createdAt, reason, problem, volume } = intent.record;
      const wait = this.#waitOf(intent);
      const why = reason !== undefined && problem !== undefined && { reason, problem };
      yield { claim, phase, createdAt, volume: volume.name, wait, ...why };
    }
  }

  #waitOf(intent: Intent | undefined): DeliberateWait | undefined {
    if (intent === undefined) return undefined;
    const nowMs = this.#parts.clock.monotonicMs();
    const wait = intentWait(intent, nowMs);
    if (wait === undefined) return undefined;
    const { reason, untilMs } = wait;
    return { reason, endsInMs: untilMs === undefined ? undefined : Math.max(0, untilMs - nowMs) };
  }
}

/** As `stateOf` of the queue, with the keys that are in progress now: workers go on while the states are read. */
function statesFromNow(queue: WorkQueue): (key: string) => KeyState {
  const inProgress = queue.processingKeys;
  return (key) => {
    const state = queue.stateOf(key);
    if (inProgress.has(key)) return state.state === 'processing' ? state : { state: 'processing', forMs: 0 };
    return state.state === 'processing' ? { state: 'waiting', forMs: 0 } : state;
  };
}

/** @param counts - whether the object of a delayed key is there. */
function queueStatus(name: string, queue: WorkQueue, counts: (key: string) => boolean): QueueStatus {
  return {
    name,
    waiting: queue.length,
    processing: queue.processingLength,
    delayed: queue.delayedKeys.filter(counts).length,
    longestSeconds: queue.unfinished().maxSeconds,
  };
}
