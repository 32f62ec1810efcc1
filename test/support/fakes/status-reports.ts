/** Reports for the status page, of any number of claims. */
import {
  type ReportedClaim,
  type ReportedHour,
  type ReportedStep,
  type ReportedVolume,
  type ReportedWait,
  type StatusReport,
  waitReasons,
} from '../../../src/diagnostics/status-page/status-report.ts';

/** When the reports were made. */
export const reportedAtMs = Date.UTC(2026, 10, 20, 9, 30, 12);

const steps: ReportedStep[] = ['retrying', 'waiting-for-consumer', 'queued', 'syncing', 'retrying', 'queued'];
const errors = [
  'failed to provision volume with StorageClass "fast-ssd": rpc error: code = ResourceExhausted desc = pool "nvme-a" has 12 GiB left, 100 GiB requested',
  'failed to provision volume with StorageClass "fast-ssd": rpc error: code = DeadlineExceeded desc = context deadline exceeded',
  'failed to provision volume with StorageClass "archive": error getting secret tape-credentials in namespace storage: secrets "tape-credentials" not found',
];

export function reportedClaim(number: number, changes: Partial<ReportedClaim> = {}): ReportedClaim {
  const step = steps[number % steps.length] ?? 'queued';
  const failures = step === 'retrying' ? (number % 9) + 1 : 0;
  return {
    namespace: `team-${['payments', 'search', 'analytics', 'web'][number % 4] ?? ''}`,
    name: `data-postgres-${number}`,
    uid: `0b5e1c52-7d3f-4a53-9a55-${String(number).padStart(12, '0')}`,
    className: number % 3 === 2 ? 'archive' : 'fast-ssd',
    createdAt: new Date(reportedAtMs - 3_600_000 * 5 + number * 1700).toISOString(),
    step,
    failures,
    lastError:
      failures === 0
        ? undefined
        : { message: errors[number % errors.length] ?? '', kind: 'failed', atMs: reportedAtMs - 42_000 },
    nextTryInMs: failures === 0 ? undefined : (number % 60) * 4000,
    ...changes,
  };
}

export const noWaits: readonly ReportedWait[] = waitReasons.map((reason) => ({
  reason,
  count: 0,
  firstEndsInMs: undefined,
  lastEndsInMs: undefined,
  example: undefined,
}));

/** An hour without anything, or with bursts. */
export function reportedHour(busy: boolean): ReportedHour {
  const minutes = Array.from({ length: 60 }, (_, minute) => minute);
  const when = (count: (minute: number) => number): number[] => minutes.map((minute) => (busy ? count(minute) : 0));
  return {
    made: when((minute) => (minute % 7) * 3),
    failed: when((minute) => (minute > 40 ? minute - 40 : 0)),
    deleted: when((minute) => (minute % 15 === 0 ? 9 : 0)),
    deletionsFailed: when((minute) => (minute > 55 ? 2 : 0)),
    waiting: minutes.map((minute) => (minute === 3 ? undefined : busy ? 20 + (minute % 11) : 0)),
  };
}

/** A released volume whose deletion fails. */
export function reportedVolume(number: number, changes: Partial<ReportedVolume> = {}): ReportedVolume {
  return {
    name: `pvc-0b5e1c52-7d3f-4a53-9a55-${String(number).padStart(12, '0')}`,
    claim: `team-web/old-data-${number}`,
    releasedAt: new Date(reportedAtMs - 7_200_000 + number * 1000).toISOString(),
    step: 'retrying',
    failures: 4,
    lastError: {
      message: 'rpc error: code = FailedPrecondition desc = volume is still attached to node "worker-7"',
      atMs: reportedAtMs - 30_000,
      sinceMs: reportedAtMs - 600_000,
    },
    nextTryInMs: 90_000,
    waitText: undefined,
    ...changes,
  };
}

/** The report with volumes that are to be deleted. */
export function withReleased(
  report: StatusReport,
  released: NonNullable<StatusReport['work']>['released'],
): StatusReport {
  return { ...report, work: report.work && { ...report.work, released } };
}

export function statusReport(claims: readonly ReportedClaim[], changes: Partial<StatusReport> = {}): StatusReport {
  const busy = claims.length > 0;
  return {
    atMs: reportedAtMs,
    program: { version: 'v0.1.0', host: 'csi-controller-7c9f8b6d4-x2x9q', startedAtMs: reportedAtMs - 266_400_000 },
    driver: {
      name: 'block.csi.example.com',
      version: '2.4.1',
      connected: true,
      capabilities: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS', 'CREATE_DELETE_VOLUME', 'CLONE_VOLUME'],
    },
    role: { name: 'leader', sinceMs: reportedAtMs - 97_200_000 },
    unhealthyReason: undefined,
    apiServer: { failingSinceMs: undefined },
    work: {
      claims,
      queues: [
        {
          name: 'claims',
          waiting: busy ? 37 : 0,
          processing: busy ? 3 : 0,
          delayed: busy ? 7 : 0,
          longestSeconds: 8,
          workers: 100,
        },
        { name: 'volumes', waiting: 0, processing: busy ? 1 : 0, delayed: 0, longestSeconds: 2, workers: 100 },
        { name: 'unsavedpvs', waiting: 0, processing: 0, delayed: 0, longestSeconds: 0 },
      ],
      phases: busy
        ? [
            {
              phase: 'create',
              count: 3,
              oldest: { claim: 'team-web/data-postgres-3', createdAt: new Date(reportedAtMs - 8000).toISOString() },
            },
            {
              phase: 'stuck',
              count: 3,
              oldest: {
                claim: 'team-web/old-data',
                createdAt: new Date(reportedAtMs - 86_400_000 * 3).toISOString(),
                problem: 'unproved: the class retains its volumes, and one may have been saved',
              },
            },
          ]
        : [],
      released: { total: 0, failing: 0, first: [] },
      waits: noWaits,
      isJournalRefused: false,
      misfits: [],
    },
    lastHour: reportedHour(busy),
    calls: busy
      ? [
          { method: 'CreateVolume', about: 'claim team-web/data-postgres-3', seconds: 8.2 },
          { method: 'CreateVolume', about: 'claim team-search/data-postgres-9', seconds: 0.4 },
          { method: 'DeleteVolume', about: 'volume pvc-0b5e1c52-7d3f-4a53-9a55-000000000007', seconds: 2.1 },
        ]
      : [],
    requests: [
      { name: 'CreateVolume', count: 412, failed: busy ? 23 : 0, medianSeconds: 0.182, p95Seconds: 9.98 },
      { name: 'create persistentvolumes', count: 389, failed: 0, medianSeconds: 0.0061, p95Seconds: 0.0212 },
      { name: 'create events', count: 801, failed: 0, medianSeconds: 0.0044, p95Seconds: 0.0173 },
      { name: 'ControllerGetCapabilities', count: 1, failed: 0, medianSeconds: 0.0044, p95Seconds: 0.0173 },
    ],
    process: {
      busy: 0.031,
      busyOverSeconds: 12,
      busySinceStart: 0.012,
      residentBytes: 97_000_000,
      heapUsedBytes: 31_000_000,
      delay: undefined,
    },
    ...changes,
  };
}
