import { type JournalEntry, markedUnread, parseEntry, reassigned } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { headerKey, parseHeader, reportOnlyReason, type ShardHeader } from './shard-header.ts';
import type { ShardObject } from './shard-storage.ts';

/** A shard as it was read. Where it is a copy or stale its entries are marked, as they are to be when it is written. */
export interface ShardContents {
  object: ShardObject;
  header: ShardHeader | undefined;
  /** By UID of the claim. */
  records: Map<string, JournalEntry>;
  /** Records of other provisioners, by UID of the claim: they are kept as they are. */
  foreign: Map<string, JournalEntry>;
  /** Entries that are no records, and are kept as they are. */
  unreadable: Map<string, string>;
  shared: Map<string, string>;
}

export interface ShardParserOptions {
  wallMs: number;
  /** Whether the records of a provisioner are ours. */
  isKnownProvisioner: (name: string) => boolean;
}

/** @returns undefined when only a newer version can read it. */
export function parseShard(
  object: ShardObject,
  { wallMs, isKnownProvisioner }: ShardParserOptions,
): ShardContents | undefined {
  const header = parseHeader(object.entries.get(headerKey));
  if (header === 'unknown') return undefined;
  const shared = new Map([...object.entries].filter(([key]) => key.startsWith('shared-')));
  const [records, foreign, unreadable] = [
    new Map<string, JournalEntry>(),
    new Map<string, JournalEntry>(),
    new Map<string, string>(),
  ];
  const plans = new PlanReader();
  const reason = reportOnlyReason(header, object.uid, wallMs);
  for (const [key, text] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const read = parseEntry(key, text, { shared, plans });
      const entry = reason === '' || read.reportOnly !== '' ? read : reassigned(read, read.writer, reason);
      (isKnownProvisioner(entry.provisioner) ? records : foreign).set(entry.uid, entry);
    } catch {
      unreadable.set(key, reason === '' ? text : markedUnread(text, reason));
    }
  }
  return { object, header, records, foreign, unreadable, shared };
}
