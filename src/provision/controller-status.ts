import type { WorkQueue } from '../kube/queue/work-queue.ts';
import { claimProgress, type ClaimProgress, type ClaimProgressParts } from './claim/claim-progress.ts';
import type { IntentRecord } from './intent-journal/intent-record.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';

/** One queue of the controller. */
export interface QueueStatus {
  /** `claims`, `volumes`, or `unsavedpvs`. */
  readonly name: string;
  /** Keys that wait for a worker. */
  readonly waiting: number;
  /** Keys that a worker has. */
  readonly processing: number;
  /** Keys whose next attempt is scheduled. */
  readonly delayed: number;
  /** How long the oldest sync in progress has been running, in seconds; 0 without one. */
  readonly longestSeconds: number;
}

/** A record of a volume in the making, without the plan. */
export type OpenIntent = Pick<IntentRecord, 'claim' | 'phase' | 'createdAt' | 'problem'> & { readonly volume: string };

/** A claim that has no volume, as the caches show it, and how far it is. */
export interface WaitingClaim {
  readonly claim: PersistentVolumeClaim;
  readonly progress: ClaimProgress;
  /** Undefined: it does not exist. */
  readonly storageClass: StorageClass | undefined;
  /** Of the name that the claim's volume gets; undefined: there is none. */
  readonly volume: PersistentVolume | undefined;
}

export interface ControllerStatusParts extends Omit<ClaimProgressParts, 'stateOf' | 'failures'> {
  claims: () => Iterable<PersistentVolumeClaim>;
  getClaim: (key: string) => PersistentVolumeClaim | undefined;
  getVolume: (name: string) => PersistentVolume | undefined;
  intents: () => Iterable<{ readonly record: IntentRecord }>;
  claimQueue: WorkQueue;
  /** All queues by name. */
  queues: ReadonlyMap<string, WorkQueue>;
}

/** What a `ProvisionController` does now, for status pages. It is computed when read, and costs nothing otherwise. */
export class ControllerStatus {
  readonly #parts: ControllerStatusParts;

  constructor(parts: ControllerStatusParts) {
    this.#parts = parts;
  }

  /**
   * The claims of this provisioner that have no volume, in no order. Goes through all claims of the cluster: take them in
   * slices.
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
    const { claimQueue } = this.#parts;
    return {
      ...this.#parts,
      stateOf: (uid) => claimQueue.stateOf(uid),
      failures: (uid) => claimQueue.failures(uid),
    };
  }

  queues(): QueueStatus[] {
    return [...this.#parts.queues].map(([name, queue]) => ({
      name,
      waiting: queue.length,
      processing: queue.processingLength,
      delayed: queue.delayedLength,
      longestSeconds: queue.unfinished().maxSeconds,
    }));
  }

  /** The open records of the intent journal; of a provisioner without one, none. */
  *openIntents(): Generator<OpenIntent> {
    for (const { record } of this.#parts.intents()) {
      const { claim, phase, createdAt, problem, volume } = record;
      yield { claim, phase, createdAt, volume: volume.name, ...(problem !== undefined && { problem }) };
    }
  }
}
