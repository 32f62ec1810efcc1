import type { Clock } from '../../base/clock.ts';
import { type JournalEntry, markedUnread, parseEntry, renewalOf, withHead } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { headerKey, parseHeader, type ShardHeader, shardReportOnly, staleReportOnly } from './shard-header.ts';
import { damagedHeaderKey, type ShardObject } from './shard-storage.ts';

/** How much of a damaged header is kept, in characters; one that is not damaged is much shorter. */
const maxDamagedLength = 4096;

/** A shard as it was read. Where it is a copy or stale its entries are marked, as they are to be when it is written. */
export interface ShardContents {
  object: ShardObject;
  header: ShardHeader | undefined;
  /** The header cannot be used as it is. */
  damage: HeaderDamage | undefined;
  /** By UID of the claim. */
  records: Map<string, JournalEntry>;
  /** Records of other provisioners, by UID of the claim: they are kept as they are. */
  ofOtherProvisioners: Map<string, JournalEntry>;
  /** Entries that are no records, and are kept as they are. */
  unreadable: Map<string, string>;
  /** Texts of the entries that are kept as they are, with the shared values that they may need, by key. */
  kept: ReadonlyMap<string, string>;
  /** What is written besides the records of ours, in bytes. */
  keptBytes: number;
  /** When entries were renewed that do not say so themselves, by key; empty where nobody knows. */
  times: Map<string, string>;
}

/** A header that was edited, or damaged otherwise. */
export interface HeaderDamage {
  text: string;
  problem: string;
}

export interface ShardParserOptions {
  clock: Pick<Clock, 'wallMs'>;
  /** Whether the records of a provisioner are ours. */
  isKnownProvisioner: (name: string) => boolean;
}

/** @returns undefined when only a newer version can read it. */
export function parseShard(
  object: ShardObject,
  { clock, isKnownProvisioner }: ShardParserOptions,
): ShardContents | undefined {
  const text = object.entries.get(headerKey);
  const read = parseHeader(text);
  if (read === 'newer') return undefined;
  const { header } = read;
  const damage = read.damage === undefined ? undefined : { text: text ?? '', problem: read.damage };
  const shared = new Map([...object.entries].filter(([key]) => key.startsWith('shared-')));
  const [records, ofOtherProvisioners, unreadable] = [
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
    return reason || staleReportOnly(at, clock.wallMs());
  };
  for (const [key, entryText] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const found = parseEntry(key, entryText, { shared, plans });
      const mark = reasonFor(key, found.renewedAt);
      const entry = mark === '' || found.reportOnly !== '' ? found : withHead(found, { reportOnly: mark });
      (isKnownProvisioner(entry.provisioner) ? records : ofOtherProvisioners).set(entry.uid, entry);
    } catch {
      const mark = reasonFor(key, renewalOf(entryText));
      unreadable.set(key, mark === '' ? entryText : markedUnread(entryText, mark));
    }
  }
  if (damage !== undefined) keepDamaged(object, damage);
  const kept = keptOf(ofOtherProvisioners, unreadable, shared);
  let keptBytes = 0;
  for (const [key, text] of [...kept, ...Object.entries(object.rest.metadata.annotations ?? {})])
    keptBytes += Buffer.byteLength(key) + Buffer.byteLength(text);
  for (const [key, time] of times) keptBytes += key.length + time.length + 6; // in the header
  return { object, header, damage, records, ofOtherProvisioners, unreadable, kept, keptBytes, times };
}

function keepDamaged({ rest: { metadata } }: ShardObject, { text }: HeaderDamage): void {
  metadata.annotations = { ...metadata.annotations, [damagedHeaderKey]: text.slice(0, maxDamagedLength) };
}

function keptOf(
  ofOtherProvisioners: ShardContents['ofOtherProvisioners'],
  unreadable: ReadonlyMap<string, string>,
  shared: ReadonlyMap<string, string>,
): Map<string, string> {
  const kept = new Map(unreadable.size === 0 ? [] : [...unreadable, ...shared]); // it may need any shared value
  for (const { key, text, shared: used } of ofOtherProvisioners.values()) {
    kept.set(key, text);
    for (const [sharedKey, value] of used) kept.set(sharedKey, value);
  }
  return kept;
}

/** When an entry was renewed that does not say so itself. */
function timeIn(header: ShardHeader | undefined, key: string): string {
  const { times = {}, renewedAt = '' } = header ?? {};
  return Object.hasOwn(times, key) ? (times[key] ?? '') : renewedAt;
}
