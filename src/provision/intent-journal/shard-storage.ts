/** The Leases of the API that keep a journal's shards. */
import type { CallOptions, KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject, ObjectMeta, Resource } from '../../kube/kube-object.ts';
import { NotFoundError } from '../../kube/client/api-error.ts';
import { leases, lockVerbs } from '../../kube/election/lease-record.ts';

/** A shard as the API server has it. */
export interface ShardObject {
  uid: string;
  /** The object without our entries. */
  rest: KubeObject & { metadata: ObjectMeta & { resourceVersion: string } };
  /** Our entries, by key without a prefix. */
  entries: Map<string, string>;
  /** UIDs of the claims whose records an operator discards, separated by commas. */
  discard: string;
  /** Since when no new volume is to be begun, as an operator has set it; empty: new ones are. */
  drain: string;
}

/** Prefix of the keys of annotations. */
export const annotationPrefix = 'csi-provisioner.journal/';
/** Where a damaged header is kept: no entry of the journal. */
export const damagedHeaderKey = 'csi-provisioner.journal-damaged/shard';
const discardKey = `${annotationPrefix}discard`;
const drainKey = `${annotationPrefix}drain`;

/** Whether an annotation is a record: the others are the header, shared values and what operators set. */
export function isRecordKey(annotation: string): boolean {
  if (!annotation.startsWith(annotationPrefix)) return false;
  return !/^(shard|discard|drain|shared-.*)$/.test(annotation.slice(annotationPrefix.length));
}

/** Leases with the verbs that a journal needs, for the rule that is logged where one is missing. */
export const journalLeases: Resource = { ...leases, verbs: lockVerbs };
/** The same for a process that also looks for other journals. */
export const listedJournalLeases: Resource = { ...leases, verbs: ['get', 'list', 'create', 'update'] };

/** The API server accepted a write, and has stored something else: nothing is protected by it. */
export class ShardAlteredError extends Error {
  override readonly name = 'ShardAlteredError';

  constructor(shard: string, key: string) {
    super(
      `the API server stored ${shard} without annotation ${JSON.stringify(key)} as it was sent: an admission webhook or policy changes it`,
    );
  }
}

/** Another version has taken the shard. */
export class OtherFormatError extends Error {
  override readonly name = 'OtherFormatError';

  constructor(shard: string, format: number) {
    super(`${shard} is in format ${format}, which this version does not read`);
  }
}

/** Reads and writes shards: one request each. Every method throws `ApiError`, `TransportError`, or the abort reason. */
export class ShardStorage {
  readonly #journal: { client: KubeClient; namespace: string; lockName: string };
  readonly #options: CallOptions;

  /** @param options.signal - aborts every request. Default: none is aborted. */
  constructor(options: { client: KubeClient; namespace: string; lockName: string; signal?: AbortSignal | undefined }) {
    this.#options = { optional: 'reported', waitsForNone: true, signal: options.signal };
    this.#journal = options;
  }

  /** Name of the object of a shard. */
  nameOf(index: number): string {
    return `${this.#journal.lockName}-journal-${index}`;
  }

  /** Undefined when there is none. */
  async read(index: number): Promise<ShardObject | undefined> {
    const name = { namespace: this.#journal.namespace, name: this.nameOf(index) };
    try {
      return parse(await this.#journal.client.get<KubeObject>(journalLeases, name, this.#options));
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Name of the object of a shard with its namespace, as log lines have it. */
  leaseOf(index: number): string {
    return `${this.#journal.namespace}/${this.nameOf(index)}`;
  }

  /** Creates it, on the condition that there is none. */
  async create(index: number, entries: Record<string, string>): Promise<ShardObject> {
    const { group, version, kind } = journalLeases;
    const object: KubeObject = {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { namespace: this.#journal.namespace, name: this.nameOf(index), annotations: annotationsOf(entries) },
    };
    return parse(await this.#journal.client.create(journalLeases, object, this.#options));
  }

  /** Sets the operator's mark in what the next `update` writes; an empty one removes it. */
  setDrain({ rest }: ShardObject, since: string): void {
    const { [drainKey]: _former, ...others } = rest.metadata.annotations ?? {};
    rest.metadata.annotations = { ...others, ...(since !== '' && { [drainKey]: since }) };
  }

  /**
   * Replaces all entries, on the condition that the object has not changed since it was read.
   *
   * Keeps the object's new resource version.
   *
   * @returns whether it is still the same object. Kubernetes creates a new Lease where an update finds none.
   * @throws {ShardAlteredError} when something else was stored.
   */
  async update(shard: ShardObject, entries: Record<string, string>, discard: string): Promise<boolean> {
    const { rest } = shard;
    const { annotations: others, ...metadata } = rest.metadata;
    const annotations = { ...others, ...(discard !== '' && { [discardKey]: discard }), ...annotationsOf(entries) };
    const object: KubeObject = { ...rest, metadata: { ...metadata, annotations } };
    const answer = await this.#journal.client.update(journalLeases, object, this.#options);
    const { uid = '', resourceVersion = '' } = answer.metadata;
    const isSame = uid === shard.uid;
    shard.uid = rest.metadata.uid = uid;
    rest.metadata.resourceVersion = resourceVersion;
    if (!isSame) return false;
    const stored = parse(answer).entries;
    for (const key in entries) {
      if (stored.get(key) !== entries[key]) throw new ShardAlteredError(rest.metadata.name, key);
    }
    return true;
  }
}

function annotationsOf(entries: Record<string, string>): Record<string, string> {
  const annotations: Record<string, string> = {};
  for (const key in entries) annotations[annotationPrefix + key] = entries[key] ?? '';
  return annotations;
}

function parse(object: KubeObject): ShardObject {
  const { annotations = {}, ...metadata } = object.metadata;
  delete (metadata as { managedFields?: unknown }).managedFields; // large, and kept by the server when left out
  const others: Record<string, string> = {};
  const entries = new Map<string, string>();
  for (const [key, value] of Object.entries(annotations)) {
    if (!key.startsWith(annotationPrefix) || key === drainKey)
      others[key] = value; // a write keeps it
    else if (key !== discardKey) entries.set(key.slice(annotationPrefix.length), value);
  }
  const rest = { ...object, metadata: { resourceVersion: '', ...metadata, annotations: others } };
  const { [discardKey]: discard = '', [drainKey]: drain = '' } = annotations;
  return { uid: metadata.uid ?? '', rest, entries, discard, drain };
}
