import type { Clock } from '../../base/clock.ts';
import { type JournalEntry, parseEntry, withHead } from './journal-entry.ts';
import { PlanReader } from './plan-text.ts';
import { damagedHeaderKey, type ShardObject } from './shard-storage.ts';

/** What a shard says about itself, in its entry `shard`. */
export const headerKey = 'shard';
/** The format that this version writes and reads. A Lease with another number is left alone. */
export const journalFormat = 2;
/**
 * Max number of shards: more than a cluster can store, as 4096 full ones are 800 MB. A journal with 10,000 open records has about a
 * hundred.
 */
export const maxShards = 4096;
/** How much of a damaged header is logged, in characters. */
const maxShownLength = 200;
/** Without a renewal for this long nobody can say what became of the records, in milliseconds. */
const maxQuietMs = 24 * 3_600_000;

export interface ShardHeader {
  format: number;
  /**
   * Of the shard's object: differs in a copy, such as a restored backup. Empty in an object that was just created, whose UID
   * nobody knew yet: nothing was written into it.
   */
  uid: string;
  /** The process that has written the shard last. */
  writer: string;
  /** Counts the writes of that process. */
  sequence: number;
  /** When that was, RFC 3339. */
  renewedAt: string;
  /** In the first shard: how many numbers are in use, at most `maxShards`. */
  shards?: number;
  /** In the first shard, without leader election: a counter of each process with open records. */
  renewals?: Record<string, number>;
}

interface ReadHeader {
  /** Undefined where there is none, and where it cannot be used. */
  header: ShardHeader | undefined;
  /** What is wrong with it: an operator has edited it, or it was damaged otherwise. */
  damage?: string;
  /** It is in the format of another version, with this number. */
  otherFormat?: number;
}

/**
 * Reads a header. What is damaged of `shards` and `renewals` is left out: it can be determined again.
 *
 * @param text - absent where nothing was written yet.
 */
export function parseHeader(text: string | undefined): ReadHeader {
  if (text === undefined) return { header: undefined };
  const fields = fieldsOf(text);
  if (fields === undefined) return { header: undefined, damage: 'it is no JSON object' };
  const { format } = fields;
  if (Number.isInteger(format) && format !== journalFormat) return { header: undefined, otherFormat: Number(format) };
  const wrong = Object.entries(isValid).filter(([name, check]) => !check(fields[name]));
  if (wrong.length === 0) return { header: fields as unknown as ShardHeader };
  const names = wrong.map(([name]) => name);
  const damage = wrong.map(([name]) => `${name} is ${shown(fields[name])}`).join(', ');
  if (!names.every((name) => optionalFields.has(name))) return { header: undefined, damage };
  const kept = Object.entries(fields).filter(([name]) => !names.includes(name));
  return { header: Object.fromEntries(kept) as unknown as ShardHeader, damage };
}

const optionalFields: ReadonlySet<string> = new Set(['shards', 'renewals'] satisfies (keyof ShardHeader)[]);

const isValid: Record<keyof ShardHeader, (value: unknown) => boolean> = {
  format: (value) => value === journalFormat,
  uid: (value) => typeof value === 'string',
  writer: (value) => typeof value === 'string' && value !== '',
  sequence: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  renewedAt: (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  shards: (value) =>
    value === undefined || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= maxShards),
  renewals: (value) => value === undefined || (isObject(value) && Object.values(value).every(Number.isSafeInteger)),
};

function fieldsOf(text: string): Record<string, unknown> | undefined {
  try {
    const fields = JSON.parse(text) as unknown;
    return isObject(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return value === undefined ? 'missing' : shortened(JSON.stringify(value));
}

/** Text of others, as much as a log line may hold of it. */
export function shortened(text: string): string {
  return text.length <= maxShownLength ? text : `${text.slice(0, maxShownLength)}...`;
}

/** Why nothing may be deleted because of any of a shard's records; empty: deletion is allowed. */
function shardReportOnly(header: ShardHeader | undefined, uid: string): string {
  if (header === undefined) return 'the journal has lost its header';
  return header.uid === uid ? '' : 'the journal is a copy, such as a restored backup';
}

/** Why nothing may be deleted because of a record that was renewed then; empty: deletion is allowed. */
function staleReportOnly(renewedAt: string, wallMs: number): string {
  const quietMs = Math.abs(wallMs - Date.parse(renewedAt));
  return quietMs <= maxQuietMs ? '' : 'the record was not renewed for 24 hours';
}

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
interface HeaderDamage {
  text: string;
  problem: string;
}

interface ShardParserOptions {
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
  const records = new Map<string, JournalEntry>();
  const ofOtherProvisioners = new Map<string, JournalEntry>();
  const unreadable = new Map<string, string>();
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
  for (const { uid, text, shared: used } of ofOtherProvisioners.values()) {
    kept.set(uid, text);
    for (const [sharedKey, value] of used) kept.set(sharedKey, value);
  }
  return kept;
}
