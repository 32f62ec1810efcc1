import { type JournalEntry, markedUnread, parseEntry, renewalOf, withHead } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { headerKey, parseHeader, type ShardHeader, shardReportOnly, staleReportOnly } from './shard-header.ts';
import type { ShardObject } from './shard-storage.ts';

/** A shard as it was read. Where it is a copy or stale its entries are marked, as they are to be when it is written. */
export interface ShardContents {
  object: ShardObject;
  header: ShardHeader | undefined;
  /** The header cannot be used as it is. */
  damage: HeaderDamage | undefined;
  /** By UID of the claim. */
  records: Map<string, JournalEntry>;
  /** Records of other provisioners, by UID of the claim: they are kept as they are. */
  foreign: Map<string, JournalEntry>;
  /** Entries that are no records, and are kept as they are. */
  unreadable: Map<string, string>;
  shared: Map<string, string>;
  /** When entries were renewed that do not say so themselves, by key; empty where nobody knows. */
  times: Map<string, string>;
}

/** A header that was edited, or damaged otherwise. */
export interface HeaderDamage {
  text: string;
  problem: string;
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
  const text = object.entries.get(headerKey);
  const read = parseHeader(text);
  if (read === 'newer') return undefined;
  const { header } = read;
  const damage = read.damage === undefined ? undefined : { text: text ?? '', problem: read.damage };
  const shared = new Map([...object.entries].filter(([key]) => key.startsWith('shared-')));
  const [records, foreign, unreadable] = [
    new Map<string, JournalEntry>(),
    new Map<string, JournalEntry>(),
    new Map<string, string>(),
  ];
  const plans = new PlanReader();
  const times = new Map<string, string>();
  const reason = shardReportOnly(header, object.uid);
  const reasonFor = (key: string, renewedAt: string): string => {
    const at = renewedAt || timeIn(header, key);
    if (renewedAt === '') times.set(key, at);
    return reason || staleReportOnly(at, wallMs);
  };
  for (const [key, entryText] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const found = parseEntry(key, entryText, { shared, plans });
      const mark = reasonFor(key, found.renewedAt);
      const entry = mark === '' || found.reportOnly !== '' ? found : withHead(found, { reportOnly: mark });
      (isKnownProvisioner(entry.provisioner) ? records : foreign).set(entry.uid, entry);
    } catch {
      const mark = reasonFor(key, renewalOf(entryText));
      unreadable.set(key, mark === '' ? entryText : markedUnread(entryText, mark));
    }
  }
  return { object, header, damage, records, foreign, unreadable, shared, times };
}

/** When an entry was renewed that does not say so itself. */
function timeIn(header: ShardHeader | undefined, key: string): string {
  const { times = {}, renewedAt = '' } = header ?? {};
  return Object.hasOwn(times, key) ? (times[key] ?? '') : renewedAt;
}
