import type { Gauge } from 'prom-client';
import { gauge, type MetricRegistry } from '../base/metrics.ts';
import type { Finding, FindingState } from './finding.ts';

/** States that are counted: those in which somebody may have to do something about a volume. */
export const countedStates = [
  'lost',
  'leaked',
  'stuck',
  'candidate',
  'unexplained',
] as const satisfies readonly FindingState[];

export type AuditCounts = Readonly<Record<(typeof countedStates)[number], number>>;

/** What is counted about audits. */
export interface AuditMetrics {
  /**
   * This instance carries out audits from now on, every so many seconds; `uncheckedSeconds` is read at each scrape.
   *
   * @returns a function that ends this: then there are no samples, as another instance may have its own.
   */
  began(intervalSeconds: number, uncheckedSeconds: () => number): () => void;
  /** An audit has ended after so many seconds; `isComplete`: everything could be checked. */
  ran(seconds: number, isComplete: boolean): void;
  /** What an audit has found; with `completeAtMs` if everything could be checked, in milliseconds since the Unix epoch. */
  found(counts: AuditCounts, completeAtMs?: number): void;
  /** The driver does not list its volumes: nothing is known. */
  absent(): void;
}

/** Registers the `audit_*` families, without samples until there is something to report. @throws {Error} when the registry has them. */
export function auditMetrics(registry: MetricRegistry): AuditMetrics {
  const families = auditFamilies(registry);
  const { volumes, seconds, completeAt, isComplete, interval } = families;
  const absent = (): void => {
    volumes.reset();
    families.uncheckedSeconds = undefined;
    for (const each of [seconds, completeAt, isComplete, interval]) each.remove(); // without labels, a reset sets it to zero
  };
  let begin = (): void => undefined;
  absent();
  return {
    absent,
    began: (intervalSeconds, uncheckedSeconds) => {
      begin = () => {
        interval.set(intervalSeconds);
        families.uncheckedSeconds = uncheckedSeconds;
      };
      begin();
      return absent;
    },
    ran: (duration, complete) => {
      begin(); // after an upgrade the driver lists its volumes
      seconds.set(duration);
      isComplete.set(complete ? 1 : 0);
    },
    found: (counts, completeAtMs) => {
      for (const state of countedStates) volumes.set({ state }, counts[state]);
      if (completeAtMs !== undefined) completeAt.set(completeAtMs / 1000);
    },
  };
}

interface AuditFamilies {
  volumes: Gauge<'state'>;
  seconds: Gauge;
  completeAt: Gauge;
  isComplete: Gauge;
  interval: Gauge;
  /** Undefined: no audits are carried out. */
  uncheckedSeconds: (() => number) | undefined;
}

function auditFamilies(registry: MetricRegistry): AuditFamilies {
  const families: AuditFamilies = {
    volumes: gauge({
      registry,
      labels: ['state'],
      name: 'audit_volumes',
      help: 'Volumes that the last audit has found, by state',
    }),
    seconds: gauge({
      registry,
      name: 'audit_last_run_duration_seconds',
      help: 'Duration of the last audit in seconds',
    }),
    completeAt: gauge({
      registry,
      name: 'audit_last_complete_run_timestamp_seconds',
      help: 'End of the last audit that could check everything, in seconds since 1970',
    }),
    isComplete: gauge({
      registry,
      name: 'audit_last_run_complete',
      help: '1 if the last audit could check everything, 0 if it failed or could not',
    }),
    interval: gauge({
      registry,
      name: 'audit_interval_seconds',
      help: 'Value of --audit-interval in seconds, while this instance carries out audits',
    }),
    uncheckedSeconds: undefined,
  };
  gauge({
    registry,
    name: 'audit_unchecked_seconds',
    help: 'Seconds since an audit could last check everything, or since this instance began to carry out audits',
    collect: (unchecked) => {
      const { uncheckedSeconds } = families;
      if (uncheckedSeconds === undefined) unchecked.remove();
      else unchecked.set(uncheckedSeconds());
    },
  });
  return families;
}

export function countFindings(findings: readonly Pick<Finding, 'state'>[]): AuditCounts {
  const counts = Object.fromEntries(countedStates.map((state) => [state, 0])) as Record<FindingState, number>;
  for (const { state } of findings) if (state in counts) counts[state]++;
  return counts;
}
