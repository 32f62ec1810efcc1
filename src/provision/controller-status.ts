import type { WorkQueue } from '../kube/queue/work-queue.ts';
import { claimProgress, type ClaimProgress, type ClaimProgressParts } from './claim/claim-progress.ts';
import type { IntentRecord } from './intent-journal/intent-record.ts';
import type { PersistentVolumeClaim } from './objects.ts';

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

export interface ControllerStatusParts extends Omit<ClaimProgressParts, 'stateOf' | 'failures'> {
  claims: () => Iterable<PersistentVolumeClaim>;
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
    const { claimQueue } = this.#parts;
    const parts: ClaimProgressParts = {
      ...this.#parts,
      stateOf: (uid) => claimQueue.stateOf(uid),
      failures: (uid) => claimQueue.failures(uid),
    };
    for (const claim of this.#parts.claims()) yield claimProgress(claim, parts);
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
