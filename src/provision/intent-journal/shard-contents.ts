import { type JournalEntry, parseEntry, reassigned } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { headerKey, parseHeader, reportOnlyReason, type ShardHeader } from './shard-header.ts';
import type { ShardObject } from './shard-storage.ts';

/** A shard as it was read. */
export interface ShardContents {
  object: ShardObject;
  header: ShardHeader | undefined;
  /** By UID of the claim. Where the shard is a copy or stale they are marked, as they are to be when it is written. */
  records: Map<string, JournalEntry>;
  /** Entries that are no records, and are kept as they are. */
  unreadable: Map<string, string>;
  shared: Map<string, string>;
}

/** @returns undefined when only a newer version can read it. */
export function parseShard(object: ShardObject, wallMs: number): ShardContents | undefined {
  const header = parseHeader(object.entries.get(headerKey));
  if (header === 'unknown') return undefined;
  const shared = new Map([...object.entries].filter(([key]) => key.startsWith('shared-')));
  const contents: ShardContents = { object, header, records: new Map(), unreadable: new Map(), shared };
  const plans = new PlanReader();
  const reason = reportOnlyReason(header, object.uid, wallMs);
  for (const [key, text] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const entry = parseEntry(key, text, { shared, plans });
      contents.records.set(
        entry.uid,
        reason === '' || entry.reportOnly !== '' ? entry : reassigned(entry, entry.writer, reason),
      );
    } catch {
      contents.unreadable.set(key, text);
    }
  }
  return contents;
}
