import { type JournalEntry, markedUnread, parseEntry, reassigned } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { headerKey, parseHeader, reportOnlyReason, type ShardHeader } from './shard-header.ts';
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
  const reason = reportOnlyReason(header, object.uid, wallMs);
  for (const [key, entryText] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const found = parseEntry(key, entryText, { shared, plans });
      const entry = reason === '' || found.reportOnly !== '' ? found : reassigned(found, found.writer, reason);
      (isKnownProvisioner(entry.provisioner) ? records : foreign).set(entry.uid, entry);
    } catch {
      unreadable.set(key, reason === '' ? entryText : markedUnread(entryText, reason));
    }
  }
  return { object, header, damage, records, foreign, unreadable, shared };
}
