/** Two processes may provision for one driver at the same time. */
import type { Workload } from '../workload.ts';
import { defineFinding } from './preflight-finding.ts';

export const twoAtOnce = defineFinding({
  name: 'two-at-once',
  check({ workload, arguments: { values } }) {
    if (values['leader-election'] || values['node-deployment']) return [];
    const { replicas = 1 } = workload;
    if (replicas > 1) {
      return [
        {
          level: 'warning',
          message: `${replicas} replicas without --leader-election: all of them provision the same claims, with the Go sidecar as well.`,
          cure: 'Turn on --leader-election, with its rule for leases, or set replicas to 1.',
        },
      ];
    }
    if (replicas === 0 || !overlaps(workload)) return [];
    return [
      {
        level: 'warning',
        message:
          'Without --leader-election, a rolling update starts the new Pod before the old one has ended: the Go sidecar and this one would provision the same claims meanwhile.',
        cure: `Set strategy: {type: Recreate}, or maxSurge: 0, before the image is changed, or turn on --leader-election, with its rule for leases.`,
      },
    ];
  },
});

/** Whether a rolling update starts a Pod before the old one has ended (Kubernetes page "Deployments", section "Strategy"). */
export function overlaps({ kind, manifest }: Workload): boolean {
  if (kind !== 'Deployment') return false;
  const strategy = manifest.fields.partAt('spec', 'strategy');
  if (strategy?.text('type') === 'Recreate') return false;
  const surge = strategy?.part('rollingUpdate')?.textOrNumber('maxSurge') ?? '25%';
  return Number.parseInt(String(surge), 10) !== 0;
}
