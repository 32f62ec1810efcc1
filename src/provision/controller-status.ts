import type { Clock } from '../base/clock.ts';
import type { KeyState, WorkQueue } from '../kube/queue/work-queue.ts';
import {
  claimProgress,
  type ClaimProgress,
  type ClaimProgressParts,
  type DeliberateWait,
} from './claim/claim-progress.ts';
import type { LastError } from './claim/last-errors.ts';
import type { IntentRecord } from './intent-journal/intent-record.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { type Intent, intentWait } from './intents/intent.ts';
import { releasedVolume, type ReleasedVolume, type ReleasedVolumeParts } from './volume/released-volume.ts';

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

export interface ControllerStatusParts
  extends
    Omit<ClaimProgressParts, 'stateOf' | 'failures' | 'wait'>,
    Pick<ReleasedVolumeParts, 'ownsSource' | 'addFinalizer' | 'quietInMs' | 'sharedStorageText'> {
  claims: () => Iterable<PersistentVolumeClaim>;
  getClaim: (key: string) => PersistentVolumeClaim | undefined;
  getVolume: (name: string) => PersistentVolume | undefined;
  /** Whether the claim of this UID is there, and has no volume. */
  needsVolume: (uid: string) => boolean;
  volumes: () => Iterable<PersistentVolume>;
  volumeError: (name: string) => LastError | undefined;
  intents: () => Iterable<Intent>;
  intentOf: (uid: string) => Intent | undefined;
  claimQueue: WorkQueue;
  volumeQueue: WorkQueue;
  /** All queues by name. */
  queues: ReadonlyMap<string, WorkQueue>;
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
    for (const claim of this.#parts.claims()) yield claimProgress(claim, parts);
  }

  /** One of them. @param key - `NAMESPACE/NAME`. @returns undefined for any other claim. */
  waitingClaim(key: string): WaitingClaim | undefined {
    const { getClaim, getClass, getVolume, volumeName } = this.#parts;
    const claim = getClaim(key);
    const progress = claim && claimProgress(claim, this.#progressParts());
    if (claim === undefined || progress === undefined) return undefined;
    return { claim, progress, storageClass: getClass(progress.className), volume: getVolume(volumeName(claim)) };
  }

  #progressParts(): ClaimProgressParts {
    const { claimQueue, intentOf } = this.#parts;
    return {
      ...this.#parts,
      stateOf: statesFromNow(claimQueue),
      failures: (uid) => claimQueue.failures(uid),
      wait: (uid) => this.#waitOf(intentOf(uid)),
    };
  }

  /** The volumes whose storage is to be deleted, in no order. Goes through all volumes of the cluster, as `waitingClaims`. */
  *releasedVolumes(): Generator<ReleasedVolume | undefined> {
    const { volumeQueue, volumeError } = this.#parts;
    const parts: ReleasedVolumeParts = {
      ...this.#parts,
      stateOf: statesFromNow(volumeQueue),
      failures: (name) => volumeQueue.failures(name),
      lastError: volumeError,
    };
    for (const volume of this.#parts.volumes()) yield releasedVolume(volume, parts);
  }

  queues(): QueueStatus[] {
    const { claimQueue, needsVolume, hasVolume, isUnsaved } = this.#parts;
    return [...this.#parts.queues].map(([name, queue]) => ({
      name,
      waiting: queue.length,
      processing: queue.processingLength,
      delayed: queue.delayedKeys.filter(queue === claimQueue ? needsVolume : (key) => hasVolume(key) || isUnsaved(key))
        .length,
      longestSeconds: queue.unfinished().maxSeconds,
    }));
  }

  /** The open records of the intent journal; of a provisioner without one, none. */
  *openIntents(): Generator<OpenIntent> {
    for (const intent of this.#parts.intents()) {
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
