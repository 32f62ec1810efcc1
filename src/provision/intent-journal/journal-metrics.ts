import type { Clock } from '../../base/clock.ts';
import { counter, gauge, histogram, type MetricRegistry } from '../../base/metrics.ts';
import { type IntentPhase, noRecords, stuckReasons } from './intent-journal.ts';

/**
 * Why something is reported and not repaired: a record is stuck, or
 *
 * - `lost`: a driver returned storage whose record is gone, and no other can be written.
 * - `unreadable`: an entry that is no record, or a Lease in the format of another version.
 * - `other-provisioner`: the record is of another provisioner, whose journal has the same name.
 * - `too-large`: a record that fits into no object.
 * - `node-gone`: the record is of a node that does not exist any more.
 */
type ReportReason = (typeof reportReasons)[number];

export const reportReasons = [
  ...stuckReasons,
  'lost',
  'unreadable',
  'other-provisioner',
  'too-large',
  'node-gone',
] as const;

/** How many records are open. */
export interface OpenRecords {
  byPhase: Readonly<Record<IntentPhase, number>>;
  /** Those that wait deliberately, by what for. */
  waiting: ReadonlyMap<string, number>;
  /** When the oldest was created, in milliseconds since the Unix epoch; Infinity without one. */
  oldestMs: number;
}

/** What is counted about open records, the controller's part and the journal's. */
export interface JournalMetrics {
  /** Called once, with a function to be called at any time. */
  open(read: () => OpenRecords): void;
  /** A record of another process was found. */
  replayed(): void;
  /** It is certain that a volume which no claim wants any more does not exist. */
  revoked(): void;
  /** Something was reported and not repaired. */
  reported(reason: ReportReason): void;
  /** A write succeeded: its seconds, and the bytes of its body. */
  written(seconds: number, bytes: number): void;
  /** Size of all objects of the journal in bytes together. */
  size(bytes: number): void;
  /** Whether records can be written. */
  isProtected(value: boolean): void;
  /** Storage is being created without a record, as the journal cannot be written. */
  unprotected(): void;
}

const nothing = (): void => undefined;

/** Counts nothing. */
export const noJournalMetrics: JournalMetrics = {
  open: nothing,
  replayed: nothing,
  revoked: nothing,
  reported: nothing,
  written: nothing,
  size: nothing,
  isProtected: nothing,
  unprotected: nothing,
};

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the `intent_journal_*` families, all at zero. @throws {Error} when the registry has them already. */
export function journalMetrics(registry: MetricRegistry, clock: Pick<Clock, 'wallMs'>): JournalMetrics {
  let open = (): OpenRecords => ({ byPhase: noRecords(), waiting: new Map(), oldestMs: Infinity });
  gauge({
    registry,
    labels: ['phase'],
    name: 'intent_journal_records',
    help: 'Open records of volumes, by phase',
    collect: (family) => {
      for (const [phase, count] of Object.entries(open().byPhase)) family.set({ phase }, count);
    },
  });
  gauge({
    registry,
    name: 'intent_journal_oldest_record_age_seconds',
    help: 'Age of the oldest open record; 0 without one',
    collect: (family) => family.set(Math.max(0, clock.wallMs() - open().oldestMs) / 1000),
  });
  gauge({
    registry,
    labels: ['reason'],
    name: 'intent_journal_waiting_records',
    help: 'Open records that are to be revoked or closed and wait deliberately, by what for',
    collect: (family) => {
      for (const [reason, count] of open().waiting) family.set({ reason }, count);
    },
  });
  const replayed = counter({
    registry,
    name: 'intent_journal_replayed_total',
    help: 'Records of an earlier process that were adopted',
  });
  const revoked = counter({
    registry,
    name: 'intent_journal_revoked_total',
    help: 'Volumes of claims that are gone, found and deleted, or found not to exist',
  });
  const reported = counter({
    registry,
    labels: ['reason'],
    name: 'intent_journal_reported_total',
    help: 'Records that were reported in the log and not acted on, by reason',
  });
  const writeSeconds = histogram({
    registry,
    buckets,
    name: 'intent_journal_write_duration_seconds',
    help: 'Duration of successful writes in seconds',
  });
  const writtenBytes = counter({
    registry,
    name: 'intent_journal_written_bytes_total',
    help: 'Bytes written',
  });
  const size = gauge({ registry, name: 'intent_journal_bytes', help: 'Size of all objects of the journal in bytes' });
  const isProtected = gauge({
    registry,
    name: 'intent_journal_protected',
    help: 'Whether records can be written (1), as far as is known, or not (0)',
  });
  const unprotected = counter({
    registry,
    name: 'intent_journal_unprotected_total',
    help: 'Volumes created without a record, because it could not be written',
  });
  const metrics: JournalMetrics = {
    open: (read) => {
      open = read;
    },
    replayed: () => replayed.inc(),
    revoked: () => revoked.inc(),
    reported: (reason) => reported.inc({ reason }),
    written: (seconds, bytes) => {
      writeSeconds.observe(seconds);
      writtenBytes.inc(bytes);
    },
    size: (bytes) => size.set(bytes),
    isProtected: (value) => isProtected.set(value ? 1 : 0),
    unprotected: () => unprotected.inc(),
  };
  metrics.isProtected(true); // a standby has not tried to write, and must not look like one that cannot
  for (const reason of reportReasons) reported.inc({ reason }, 0);
  return metrics;
}
