/** Reads a journal without taking over or writing anything. */
import type { Clock } from '../../base/clock.ts';
import type { IntentPhase, IntentRecord, StuckReason } from './intent-journal.ts';
import { recordOf } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { findMore, inParallel } from './read-shards.ts';
import { headerKey, parseShard } from './shard-contents.ts';
import { type JournalLocation, type ShardObject, ShardStorage } from './shard-storage.ts';

export interface ReadJournalOptions extends JournalLocation {
  /** Whether the records of a provisioner are wanted; those of others are left out. */
  isKnownProvisioner: (name: string) => boolean;
  /** The time now: records that were not renewed for long are only reported. */
  clock: Pick<Clock, 'wallMs'>;
}

/** A record, and where it is stored. */
export interface StoredRecord {
  record: IntentRecord;
  shard: number;
  /** When its process has last renewed it, RFC 3339. */
  renewedAt: string;
  /** Why nothing may be deleted because of it, such as a restored backup; empty: deletion is allowed. */
  reportOnly: string;
}

export interface ReadJournal {
  /** A sidecar has written it: it does so when it starts. */
  exists: boolean;
  /** Numbers of the shards that exist. */
  shards: number[];
  /** Numbers of the shards that the header names and that do not exist: a sidecar is about to create them, or they were deleted. */
  missing: number[];
  /** Since when no new volume is begun, RFC 3339, as an operator has set it; empty: new ones are. */
  drain: string;
  /** All records, the oldest first. */
  records: StoredRecord[];
  /** What could not be read: `<object>`, or `<object>/<key>` for a single entry. */
  unreadable: string[];
}

/**
 * Reads all records as they are stored now. A journal that was never written is empty.
 *
 * @throws {ApiError} and {TransportError} when a shard cannot be read: then nothing is known.
 */
export async function readJournal(options: ReadJournalOptions): Promise<ReadJournal> {
  const storage = new ShardStorage(options);
  const plans = new PlanReader();
  const journal: ReadJournal = { exists: false, shards: [], missing: [], drain: '', records: [], unreadable: [] };
  /** @returns how many shards there are, as far as this one says; `other` for one in another format. */
  const take = (shard: number, object: ShardObject | undefined): number | 'other' | undefined => {
    if (object === undefined) return undefined;
    journal.exists = true;
    journal.shards.push(shard);
    journal.drain ||= object.drain;
    const contents = parseShard(object, options);
    if ('otherFormat' in contents) {
      journal.unreadable.push(storage.nameOf(shard));
      return 'other';
    }
    if (contents.damage !== undefined) journal.unreadable.push(`${storage.nameOf(shard)}/${headerKey}`);
    for (const key of contents.unreadable.keys()) journal.unreadable.push(`${storage.nameOf(shard)}/${key}`);
    for (const entry of contents.records.values()) {
      journal.records.push({
        record: recordOf(entry, plans),
        shard,
        renewedAt: entry.renewedAt,
        reportOnly: entry.reportOnly,
      });
    }
    return contents.header?.shards;
  };
  const read = (shard: number): Promise<ShardObject | undefined> => storage.read(shard);
  let root = 0;
  let count = take(root, await read(root));
  while (count === 'other') count = take(++root, await read(root));
  const others = Array.from({ length: Math.max(0, (count ?? 0) - root - 1) }, (_, index) => root + 1 + index);
  await inParallel(others, async (shard) => {
    const object = await read(shard);
    if (object === undefined) journal.missing.push(shard);
    take(shard, object);
  });
  await findMore(Math.max(root + 1, count ?? 0), {
    isCounted: count !== undefined,
    read,
    found: (shard, object) => {
      take(shard, object);
    },
  });
  journal.records.sort((a, b) => (a.record.createdAt < b.record.createdAt ? -1 : 1));
  return journal;
}

/** A record as operators see it. */
interface RecordState {
  /** `stuck` also where nothing may be deleted because of the record, whatever its own phase is. */
  phase: IntentPhase;
  /** Why it is stuck; undefined: it is not. */
  reason: StuckReason | undefined;
  /** What it waits for, as far as the record itself says so: one clause, without a full stop. */
  waitsFor: string;
}

export function recordState({ record, reportOnly }: Pick<StoredRecord, 'record' | 'reportOnly'>): RecordState {
  if (reportOnly !== '') return { phase: 'stuck', reason: 'restored', waitsFor: reportOnly };
  const { phase, reason = 'undecidable', problem = 'no reason is recorded' } = record;
  if (phase === 'stuck') return { phase, reason, waitsFor: problem };
  return { phase, reason: undefined, waitsFor: phaseTexts[phase] };
}

/** Whether the sidecar leaves it to an operator. */
export function isStuck(stored: Pick<StoredRecord, 'record' | 'reportOnly'>): boolean {
  return recordState(stored).phase === 'stuck';
}

const phaseTexts = {
  create: 'the driver is creating it, or is about to',
  unclear: 'an attempt ended without a clear result, and is being retried',
  revoke: 'no claim needs it, and it is deleted once no earlier request can be under way',
  delete: 'no claim needs it, and it is being deleted',
} as const;
