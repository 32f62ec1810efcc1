/** Reports a leader that is not ready: claims may not be provisioned meanwhile, and none of their events says why. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Cause } from '../explain/causes/cause.ts';
import { notReadyCure } from '../explain/causes/provisioner-state.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { ObjectReference } from '../kube/kube-object.ts';
import { notReadyReason } from '../provision/event-reasons.ts';
import type { Feature } from './feature.ts';
import type { Health } from './health.ts';

/** A process that has just become leader may take so long to fill its caches, in milliseconds. */
const patienceMs = 30_000;
/** Pause between two checks of the readiness, in milliseconds. */
const pauseMs = 5000;
/** The event is repeated this often while it lasts, in milliseconds. */
const repeatMs = 10 * 60_000;

export interface UnreadyLeaderOptions {
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
      await clock.sleep(pauseMs, { signal });
    } catch {
      return; // the work has ended
    }
    const nowMs = clock.monotonicMs();
    const reason = ready.unhealthyReason;
    sinceMs = reason === undefined ? undefined : (sinceMs ?? nowMs);
    if (reason === undefined || sinceMs === undefined || nowMs - sinceMs < patienceMs) continue;
    const kind = reason.replaceAll(/\d+/g, ''); // how long a cache is silent is in the text
    if (kind === reported.kind && nowMs - reported.atMs < repeatMs) continue;
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
