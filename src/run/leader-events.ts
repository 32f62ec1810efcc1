/**
 * Events on the Lease and on the Pod of this process, where claims wait and none of their own events says why: it may not hold its lock,
 * waits for another process with its identity, or leads and is not ready.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Cause } from '../explain/causes/cause.ts';
import { notReadyCure } from '../explain/causes/provisioner-state.ts';
import { ForbiddenError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { ownPod } from '../kube/client/own-account.ts';
import { leases } from '../kube/election/lease-record.ts';
import type { Recorder } from '../kube/events/event-recorder.ts';
import type { ObjectReference } from '../kube/kube-object.ts';
import { electionWaitingReason, notReadyReason } from '../provision/event-reasons.ts';
import type { Feature } from './feature.ts';
import type { Health } from './health.ts';

/** Number of consecutive forbidden requests from which on they are reported: an API server that has just started may forbid any request. */
const reportedFrom = 3;
/** Pause between two reports, in milliseconds: the API server deletes events after an hour. */
const repeatForbiddenMs = 30 * 60_000;

interface ForbiddenLockOptions {
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
    if (clock.monotonicMs() - this.#reportedAtMs < repeatForbiddenMs) return;
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
      'LeaderElectionForbidden',
      `Not permitted to hold the lease ${lock}, so this process provisions nothing: ${error.message}. ${cureOf(error)}`,
    );
  }
}

function cureOf({ isAdmission, request }: ForbiddenError): string {
  if (isAdmission) return 'An admission plugin or webhook rejected it';
  const { plural, group, verbs } = request.resource;
  return `Grant ${verbs?.join(', ') ?? request.verb} on ${group === '' ? plural : `${plural}.${group}`}; no restart is needed`;
}

/** Another process with the identity of this one; alive: it was seen to renew the Lease. */
export interface Namesake {
  readonly isAlive: boolean;
}

const namesakeCure =
  'Give each Pod a host name of its own (with hostNetwork it has that of the node), or run one replica per node';

/** Describes the process that is waited for: to everybody else the Lease seems to be held by this one. */
export function namesakeText(identity: string, { isAlive }: Namesake): string {
  const what = isAlive ? 'which holds the lease' : 'which has renewed the lease and may still run';
  return `another process with its identity ${identity}, ${what}`;
}

/** Records an event about it on the Lease and on the Pod of this process. Never rejects. */
export async function recordNamesake(
  namesake: Namesake,
  options: {
    client: KubeClient;
    recorder: Recorder;
    lock: { namespace: string; name: string };
    identity: string;
    /** Aborts the request that reads the Pod. */
    signal: AbortSignal;
  },
): Promise<void> {
  const { client, recorder, lock, identity, signal } = options;
  const lease = { apiVersion: `${leases.group}/${leases.version}`, kind: leases.kind, ...lock };
  const pod = await ownPod(client, { signal }).catch(() => undefined); // it rejects when the signal aborts
  const text = `A standby waits for ${namesakeText(identity, namesake)}${namesake.isAlive ? `. ${namesakeCure}` : ''}`;
  const type = namesake.isAlive ? 'Warning' : 'Normal';
  for (const object of [lease, pod]) {
    if (object !== undefined) recorder.event(object, type, electionWaitingReason, text);
  }
}

/** A process that has just become leader may take so long to fill its caches, in milliseconds. */
const unreadyPatienceMs = 30_000;
/** Pause between two checks of the readiness, in milliseconds. */
const readyPollMs = 5000;
/** The event is repeated this often while it lasts, in milliseconds. */
const repeatUnreadyMs = 10 * 60_000;

interface UnreadyLeaderOptions {
  ready: Pick<Health, 'unhealthyReason'>;
  recorder: Recorder;
  /** The Lease that makes this process the leader; undefined without leader election: then there is only a log line. */
  lease: { namespace: string; name: string } | undefined;
  clock: Clock;
  logger: Logger;
}

/** The event `ProvisionerNotReady` on the Lease, and a log line, while the leader has not been ready for 30 s. */
export function unreadyLeader(options: UnreadyLeaderOptions): Feature {
  return { follow: (signal) => reportUnready(options, signal) };
}

async function reportUnready(options: UnreadyLeaderOptions, signal: AbortSignal): Promise<void> {
  const { ready, clock } = options;
  let sinceMs: number | undefined;
  let reported = { kind: '', atMs: -Infinity };
  for (;;) {
    try {
      await clock.sleep(readyPollMs, { signal });
    } catch {
      return; // the work has ended
    }
    const nowMs = clock.monotonicMs();
    const reason = ready.unhealthyReason;
    sinceMs = reason === undefined ? undefined : (sinceMs ?? nowMs);
    if (reason === undefined || sinceMs === undefined || nowMs - sinceMs < unreadyPatienceMs) continue;
    const kind = reason.replaceAll(/\d+/g, ''); // how long a cache is silent is in the text
    if (kind === reported.kind && nowMs - reported.atMs < repeatUnreadyMs) continue;
    reported = { kind, atMs: nowMs };
    report(options, reason);
  }
}

function report({ recorder, lease, logger }: UnreadyLeaderOptions, reason: string): void {
  logger.error(
    { reason, cause: 'not-ready' satisfies Cause, cure: notReadyCure },
    'Has not been ready for 30 seconds: claims may not be provisioned',
  );
  if (lease === undefined) return;
  const reference: ObjectReference = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...lease };
  recorder.event(reference, 'Warning', notReadyReason, reason);
}
