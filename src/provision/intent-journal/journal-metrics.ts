import type { IntentPhase } from './intent-record.ts';

/**
 * Why something is reported and not repaired.
 *
 * - `unproved`: a PersistentVolume may have had the volume, which may be kept on purpose.
 * - `lost`: a driver returned storage whose record is gone, and no other can be written.
 * - `restored`: the record may be outdated or of another cluster, such as one of a restored backup.
 * - `undecidable`: what an attempt left behind cannot be determined.
 * - `unreadable`: an entry that is no record, or a Lease in the format of another version.
 * - `other-provisioner`: the record is of another provisioner, whose journal has the same name.
 * - `too-large`: a record that fits into no object.
 * - `node-gone`: the record is of a node that does not exist any more.
 */
export type ReportReason = (typeof reportReasons)[number];

export const reportReasons = [
  'unproved',
  'lost',
  'restored',
  'undecidable',
  'unreadable',
  'other-provisioner',
  'too-large',
  'node-gone',
] as const;

/** What is counted about open records, the controller's part and the journal's. */
export interface JournalMetrics {
  /** Open records by phase, after each change; the object goes on changing. */
  records(byPhase: Readonly<Record<IntentPhase, number>>): void;
  /**
   * Called once, with a function to be called at any time: it returns when the oldest open record was created, in
   * milliseconds since the Unix epoch; undefined: none is open.
   */
  oldestCreatedAtMs(read: () => number | undefined): void;
  /** Called once, with a function to be called at any time: how many open records wait, by reason. */
  waiting(read: () => ReadonlyMap<string, number>): void;
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
  records: nothing,
  oldestCreatedAtMs: nothing,
  waiting: nothing,
  replayed: nothing,
  revoked: nothing,
  reported: nothing,
  written: nothing,
  size: nothing,
  isProtected: nothing,
  unprotected: nothing,
};
