import { gauge, type MetricRegistry } from '../base/metrics.ts';
import type { Finding, FindingState } from './finding.ts';

/** States that are counted: those in which somebody may have to do something about a volume. */
export const countedStates = [
  'lost',
  'leaked',
  'unproved',
  'candidate',
  'unexplained',
] as const satisfies readonly FindingState[];

export type AuditCounts = Readonly<Record<(typeof countedStates)[number], number>>;

/** What is counted about audits. */
export interface AuditMetrics {
  /** An audit has ended, well or badly, after so many seconds. */
  ran(seconds: number): void;
  /** What one has found; with `completeAtMs` if everything could be checked, in milliseconds since the Unix epoch. */
  found(counts: AuditCounts, completeAtMs?: number): void;
  /** The driver does not list its volumes: nothing is known. */
  absent(): void;
}

/** Registers the `audit_*` families, without samples until there is something to report. @throws {Error} when the registry has them. */
export function auditMetrics(registry: MetricRegistry): AuditMetrics {
  const volumes = gauge({
    registry,
    labels: ['state'],
    name: 'audit_volumes',
    help: 'Volumes that the last audit has found, by state',
  });
  const seconds = gauge({
    registry,
    name: 'audit_last_run_duration_seconds',
    help: 'Duration of the last audit in seconds',
  });
  const completeAt = gauge({
    registry,
    name: 'audit_last_complete_run_timestamp_seconds',
    help: 'End of the last audit that could check everything, in seconds since 1970',
  });
  const absent = (): void => {
    volumes.reset();
    for (const each of [seconds, completeAt]) each.remove(); // without labels, a reset sets it to zero
  };
  absent();
  return {
    absent,
    ran: (duration) => seconds.set(duration),
    found: (counts, completeAtMs) => {
      for (const state of countedStates) volumes.set({ state }, counts[state]);
      if (completeAtMs !== undefined) completeAt.set(completeAtMs / 1000);
    },
  };
}

export function countFindings(findings: readonly Pick<Finding, 'state'>[]): AuditCounts {
  const counts = Object.fromEntries(countedStates.map((state) => [state, 0])) as Record<FindingState, number>;
  for (const { state } of findings) if (state in counts) counts[state]++;
  return counts;
}
