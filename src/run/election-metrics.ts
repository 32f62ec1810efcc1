import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import { ApiError, TransportError } from '../kube/client/api-error.ts';
import type { LeaderElectorMetrics } from '../kube/election/leader-elector-options.ts';

export interface ElectionMetrics extends LeaderElectorMetrics {
  /** Counts a failed request for the lock. */
  failed(error: unknown): void;
}

/**
 * The metrics of Kubernetes' own controllers, and the failures. The label `name` is empty, as in the Go sidecar: dashboards select
 * it that way.
 */
export function electionMetrics(registry: MetricRegistry): ElectionMetrics {
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
  const failures = counter({
    registry,
    name: 'leader_election_failures_total',
    help: 'Failed requests for the lease, by reason; Forbidden: a permission on leases is missing, and this process cannot become leader',
    labels: ['name', 'reason'],
  });
  failures.inc({ name: '', reason: 'Forbidden' }, 0);
  return {
    leading: (isLeader) => status.set({ name: '' }, isLeader ? 1 : 0),
    slowPath: () => slowPath.inc({ name: '' }),
    failed: (error) => failures.inc({ name: '', reason: reasonOf(error) }),
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof ApiError) return error.reason === '' ? String(error.code) : error.reason;
  return error instanceof TransportError ? error.code : 'Timeout'; // of the request, or of the time to renew
}
