import type { Clock } from '../../base/clock.ts';
import { type JournalEntry, parseEntry, withHead } from './journal-entry.ts';
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
}

/** A shard that another version has written: it is left alone. */
export interface OtherFormat {
  otherFormat: number;
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

export function parseShard(
  object: ShardObject,
  { clock, isKnownProvisioner }: ShardParserOptions,
): ShardContents | OtherFormat {
  const text = object.entries.get(headerKey);
  const { header, otherFormat, damage: problem } = parseHeader(text);
  if (otherFormat !== undefined) return { otherFormat };
  const damage = problem === undefined ? undefined : { text: text ?? '', problem };
  const shared = new Map([...object.entries].filter(([key]) => key.startsWith('shared-')));
  const [records, ofOtherProvisioners, unreadable] = [
    new Map<string, JournalEntry>(),
    new Map<string, JournalEntry>(),
    new Map<string, string>(),
  ];
  const plans = new PlanReader();
  const reason = shardReportOnly(header, object.uid);
  for (const [key, entryText] of object.entries) {
    if (key === headerKey || shared.has(key)) continue;
    try {
      const found = parseEntry(key, entryText, { shared, plans });
      const mark = reason || staleReportOnly(found.renewedAt, clock.wallMs());
      const entry = mark === '' || found.reportOnly !== '' ? found : withHead(found, { reportOnly: mark });
      (isKnownProvisioner(entry.provisioner) ? records : ofOtherProvisioners).set(entry.uid, entry);
    } catch {
      unreadable.set(key, entryText);
    }
  }
  if (damage !== undefined) keepDamaged(object, damage);
  const kept = keptOf(ofOtherProvisioners, unreadable, shared);
  let keptBytes = 0;
  for (const [key, text] of [...kept, ...Object.entries(object.rest.metadata.annotations ?? {})])
    keptBytes += Buffer.byteLength(key) + Buffer.byteLength(text);
  return { object, header, damage, records, ofOtherProvisioners, unreadable, kept, keptBytes };
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
