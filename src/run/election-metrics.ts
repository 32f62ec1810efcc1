import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import type { LeaderElectorMetrics } from '../kube/election/leader-elector-options.ts';

/** The metrics of Kubernetes' own controllers. The label is empty, as in the original: dashboards select it so. */
export function electionMetrics(registry: MetricRegistry): LeaderElectorMetrics {
  const status = gauge({
    registry,
    name: 'leader_election_master_status',
    help: 'Whether this process is the leader (1) or a standby (0)',
    stability: 'ALPHA',
    labels: ['name'],
  });
  const slowPath = counter({
    registry,
    name: 'leader_election_slowpath_total',
    help: 'Renewals of the lease that needed more than one request',
    stability: 'ALPHA',
    labels: ['name'],
  });
  return {
    leading: (isLeader) => status.set({ name: '' }, isLeader ? 1 : 0),
    slowPath: () => slowPath.inc({ name: '' }),
  };
}
