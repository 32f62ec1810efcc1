/** Reports that this process waits for another one with its identity: to everybody else the Lease seems to be held by this process. */
import type { KubeClient } from '../kube/client/kube-client.ts';
import { ownPod } from '../kube/client/own-pod.ts';
import { leases } from '../kube/election/lease-record.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { electionWaitingReason } from '../provision/event-reasons.ts';

/** Another process with the identity of this one; alive: it was seen to renew the Lease. */
export interface Namesake {
  readonly isAlive: boolean;
}

const cure =
  'Give each Pod a host name of its own (with hostNetwork it has that of the node), or run one replica per node';

/** Describes the process that is waited for. */
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
  const text = `A standby waits for ${namesakeText(identity, namesake)}${namesake.isAlive ? `. ${cure}` : ''}`;
  const type = namesake.isAlive ? 'Warning' : 'Normal';
  for (const object of [lease, pod]) {
    if (object !== undefined) recorder.event(object, type, electionWaitingReason, text);
  }
}
