/** Replicas with the same holder identity in the Lease, which is the host name. */
import type { Workload } from '../workload.ts';
import { defineFinding } from './preflight-finding.ts';
import { overlaps } from './two-at-once.ts';

export const sharedHostName = defineFinding({
  name: 'shared-host-name',
  check({ workload, arguments: { values } }) {
    const { replicas = 1 } = workload;
    const why = reasonOf(workload);
    if (!values['leader-election'] || values['node-deployment'] || why === undefined) return [];
    if (replicas === 1 && overlaps(workload)) {
      return [
        {
          level: 'note',
          message: `A rolling update starts the new Pod before the old one has ended, : the Go sidecar then takes over the Lease of the one that still works. This sidecar waits as a standby until the Lease is released.`,
        },
      ];
    }
    if (replicas < 2) return [];
    return [
      {
        level: 'warning',
        message: `${replicas} replicas with leader election, ${why}: the identity in the Lease is the host name, so that two Go sidecars work at the same time. With this sidecar the second one waits as a standby, and reports it.`,
        cure: 'Give each Pod a host name of its own: without hostNetwork and hostname it is that of the Pod. Or allow one Pod on a node, with a required podAntiAffinity.',
      },
    ];
  },
});

/** Why Pods may have one host name. */
function reasonOf({ kind, pod }: Workload): string | undefined {
  if (pod.flag('hostNetwork') === true) {
    return isApart(pod) ? undefined : 'with hostNetwork: two on one node have its host name';
  }
  // a StatefulSet sets it to the name of the Pod
  return kind !== 'StatefulSet' && (pod.text('hostname') ?? '') !== '' ? 'with one hostname for all' : undefined;
}

/** Whether no two Pods are scheduled on one node, as far as the manifest says. */
function isApart(pod: Workload['pod']): boolean {
  const terms = pod.partAt('affinity', 'podAntiAffinity')?.parts('requiredDuringSchedulingIgnoredDuringExecution');
  return terms?.some((term) => term.text('topologyKey') === 'kubernetes.io/hostname') ?? false;
}
