import { type IntentPhase, intentPhases, type IntentRecord } from './intent-journal.ts';
import type { Cut, PlanReader, PlanWriter } from './plan-text.ts';

/** A record as it is stored. Never changed, only replaced. */
export interface JournalEntry {
  /** Of the claim; the key of the entry. */
  readonly uid: string;
  /** JSON of the entry. */
  readonly text: string;
  /** The values that the record shares with others, as they are stored, by key. */
  readonly shared: ReadonlyMap<string, string>;
  readonly phase: IntentPhase;
  /** Of the volume's class. */
  readonly provisioner: string;
  /** The process that works on it. */
  readonly writer: string;
  /** When that process has last renewed it, RFC 3339. */
  readonly renewedAt: string;
  /** As `IntentRecord.since`; empty: none is known. */
  readonly since: string;
  /** Why nothing may be deleted because of it; empty: deletion is allowed. */
  readonly reportOnly: string;
  /** Of UID and text, shared values not included. */
  readonly bytes: number;
}

/** What an entry begins with: it may change while the record stays. */
type Head = Pick<JournalEntry, 'writer' | 'renewedAt' | 'since' | 'reportOnly'>;

interface StoredEntry {
  writer: string;
  renewedAt: string;
  since?: string;
  reportOnly?: string;
  shared: Cut[];
  record: Omit<IntentRecord, 'since'>;
}

/** A key that is allowed in annotations, apart from the keys that are no records. */
const plainKey = /^(?!sha)[A-Za-z0-9][-A-Za-z0-9_.]{0,61}[A-Za-z0-9]$/;

/** @throws {TypeError} for a claim whose UID cannot be a key. */
export function entryOf(
  record: IntentRecord,
  options: { writer: string; renewedAt: string; reportOnly: string; plans: PlanWriter },
): JournalEntry {
  const { plan, since = '', ...rest } = record;
  const { text, cuts, shared } = options.plans.write(plan);
  const fields = JSON.stringify(rest).slice(0, -1);
  const body = `"shared":${JSON.stringify(cuts)},"record":${fields},"plan":${text}}}`;
  const { uid } = record.claim;
  const { provisioner } = record.volume;
  const { writer, renewedAt, reportOnly } = options;
  return entry({ uid, body, shared, phase: record.phase, provisioner, writer, renewedAt, since, reportOnly });
}

/** The same record with another head: as another process's, renewed, or with a reason not to delete anything. */
export function withHead(old: JournalEntry, changes: Partial<Head>): JournalEntry {
  const head = headOf(old);
  const changed = { ...old, ...changes };
  if (headOf(changed) === head) return old;
  const isRenewed = changed.writer === old.writer && changed.reportOnly === old.reportOnly;
  if (isRenewed && old.text.startsWith(head)) return entry({ ...changed, body: old.text.slice(head.length) });
  const { shared, record } = JSON.parse(old.text) as StoredEntry;
  return entry({ ...changed, body: JSON.stringify({ shared, record }).slice(1) });
}

/**
 * Reads an entry.
 *
 * @param shared - all shared values of its shard.
 * @throws {Error} unless it is a record.
 */
export function parseEntry(
  key: string,
  text: string,
  { shared, plans }: { shared: ReadonlyMap<string, string>; plans: PlanReader },
): JournalEntry {
  const { writer, renewedAt, since = '', reportOnly = '', shared: cuts, record } = parsed(text, shared, plans);
  const { uid } = record.claim;
  const areTexts = [writer, renewedAt, since, reportOnly].every((each) => typeof each === 'string');
  const isWhole = isRecord(record) && areTexts && !Number.isNaN(Date.parse(renewedAt));
  if (uid !== key || !isWhole) throw new Error('it is not a record');
  const used = new Map(cuts.map(([, each]) => [each, shared.get(each) ?? '']));
  const { phase, volume } = record;
  const { provisioner } = volume;
  return stored({ uid, text, shared: used, phase, provisioner, writer, renewedAt, since, reportOnly });
}

/** The record of an entry that was written or read before. */
export function recordOf({ text, shared, since }: JournalEntry, plans: PlanReader): IntentRecord {
  const { record } = parsed(text, shared, plans);
  return since === '' ? record : { ...record, since };
}

/** Sizes of the values that entries share, by key: of key and text, in bytes. */
export function sharedBytes(entries: readonly JournalEntry[]): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { shared } of entries) {
    for (const [key, text] of shared) if (!bytes.has(key)) bytes.set(key, key.length + Buffer.byteLength(text));
  }
  return bytes;
}

const phases: ReadonlySet<string> = new Set<IntentPhase>(intentPhases);

/** Whether it has what the controller reads of every record; one that was edited may lack anything. */
function isRecord({ claim, volume, plan, phase, quietInMs = 0 }: StoredEntry['record']): boolean {
  const texts: unknown[] = [claim.namespace, claim.name, volume.name, volume.className, volume.provisioner];
  const objects: unknown[] = [volume.claimRef, volume.defaults, plan];
  return (
    phases.has(phase) &&
    Number.isFinite(quietInMs) &&
    texts.every((each) => typeof each === 'string') &&
    objects.every((each) => typeof each === 'object' && each !== null)
  );
}

function parsed(text: string, shared: ReadonlyMap<string, string>, plans: PlanReader): StoredEntry {
  const stored = JSON.parse(text) as StoredEntry;
  plans.restore(stored.record.plan, stored.shared, shared);
  return stored;
}

function entry({ body, ...rest }: Omit<JournalEntry, 'text' | 'bytes'> & { body: string }): JournalEntry {
  return stored({ ...rest, text: headOf(rest) + body });
}

function stored(parts: Omit<JournalEntry, 'bytes'>): JournalEntry {
  const { uid, text } = parts;
  if (!plainKey.test(uid)) throw new TypeError(`the claim's UID cannot be the key of a record: ${JSON.stringify(uid)}`);
  return { ...parts, bytes: uid.length + Buffer.byteLength(text) };
}

/** How the text of an entry begins. */
function headOf({ writer, renewedAt, since, reportOnly }: Head): string {
  const version = since === '' ? '' : `"since":${JSON.stringify(since)},`;
  const mark = reportOnly === '' ? '' : `"reportOnly":${JSON.stringify(reportOnly)},`;
  return `{"writer":${JSON.stringify(writer)},"renewedAt":${JSON.stringify(renewedAt)},${version}${mark}`;
}

/** Entries of one shard by UID of the claim, with the values that they share, and how large all of it is. */
export class HeldEntries {
  readonly #entries = new Map<string, JournalEntry>();
  readonly byUid: ReadonlyMap<string, JournalEntry> = this.#entries;
  readonly #shared = new Map<string, { text: string; bytes: number; users: number }>();
  #bytes = 0;

  /** Of entries and shared values, as Kubernetes counts the size of annotations. */
  get bytes(): number {
    return this.#bytes;
  }

  /** By how many bytes these would enlarge it. */
  bytesOf(entryBytes: number, shared: ReadonlyMap<string, number>): number {
    let bytes = entryBytes;
    for (const [key, more] of shared) if (!this.#shared.has(key)) bytes += more;
    return bytes;
  }

  /** Replaces the entry of a claim; undefined: there is none. */
  set(uid: string, entry: JournalEntry | undefined): void {
    const old = this.#entries.get(uid);
    if (old === entry) return;
    if (entry !== undefined) {
      this.#entries.set(uid, entry);
      this.#bytes += entry.bytes;
      for (const [key, text] of entry.shared) this.#addShared(key, text);
    } else this.#entries.delete(uid);
    if (old === undefined) return;
    this.#bytes -= old.bytes;
    for (const key of old.shared.keys()) this.#dropShared(key);
  }

  /** Keys and texts of all, the shared values first. */
  *texts(): Iterable<[string, string]> {
    for (const [key, { text }] of this.#shared) yield [key, text];
    for (const { uid, text } of this.#entries.values()) yield [uid, text];
  }

  #addShared(key: string, text: string): void {
    const known = this.#shared.get(key);
    if (known !== undefined) {
      known.users++;
      return;
    }
    const bytes = key.length + Buffer.byteLength(text);
    this.#shared.set(key, { text, bytes, users: 1 });
    this.#bytes += bytes;
  }

  #dropShared(key: string): void {
    const known = this.#shared.get(key);
    if (known === undefined || --known.users > 0) return;
    this.#shared.delete(key);
    this.#bytes -= known.bytes;
  }
}
