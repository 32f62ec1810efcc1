/** Reports that this process is not permitted to hold its lock: claims wait meanwhile, without an event that says why. */
import type { Clock } from '../base/clock.ts';
import { ForbiddenError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { ownPod } from '../kube/client/own-pod.ts';
import type { Recorder } from '../kube/events/recorder.ts';

/** Number of consecutive forbidden requests from which on they are reported: an API server that has just started may forbid any request. */
const reportedFrom = 3;
/** Pause between two reports, in milliseconds: the API server deletes events after an hour. */
const repeatMs = 30 * 60_000;
const reason = 'LeaderElectionForbidden';

export interface ForbiddenLockOptions {
  client: KubeClient;
  recorder: Recorder;
  /** NAMESPACE/NAME of the lock. */
  lock: string;
  /** Aborts the request that reads the Pod. */
  signal: AbortSignal;
  clock: Clock;
}

/** Records an event on the Pod of this process while the API server forbids the requests of its election. */
export class ForbiddenLock {
  readonly #options: ForbiddenLockOptions;
  #inARow = 0;
  #reportedAtMs = -Infinity;

  constructor(options: ForbiddenLockOptions) {
    this.#options = options;
  }

  /**
   * To be called after each request of the leader election.
   *
   * @param error - why it failed; undefined: it succeeded.
   */
  note(error: unknown): void {
    const { clock } = this.#options;
    this.#inARow = error instanceof ForbiddenError ? this.#inARow + 1 : 0;
    if (!(error instanceof ForbiddenError) || this.#inARow < reportedFrom) return;
    if (clock.monotonicMs() - this.#reportedAtMs < repeatMs) return;
    this.#reportedAtMs = clock.monotonicMs();
    void this.#report(error);
  }

  async #report(error: ForbiddenError): Promise<void> {
    const { client, recorder, lock, signal } = this.#options;
    const pod = await ownPod(client, { signal }).catch(() => undefined); // the signal's reason
    if (pod === undefined) return;
    recorder.event(
      pod,
      'Warning',
      reason,
      `Not permitted to hold the lease ${lock}, so this process provisions nothing: ${error.message}. ${cureOf(error)}`,
    );
  }
}

function cureOf({ isAdmission, request }: ForbiddenError): string {
  if (isAdmission) return 'An admission plugin or webhook rejected it';
  const { plural, group, verbs } = request.resource;
  return `Grant ${verbs?.join(', ') ?? request.verb} on ${group === '' ? plural : `${plural}.${group}`}; no restart is needed`;
}
