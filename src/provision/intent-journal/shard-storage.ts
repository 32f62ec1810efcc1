/** The Leases of the API that keep a journal's shards, and what a failed request for one means. */
import type { Clock } from '../../base/clock.ts';
import { mayUse } from '../../kube/client/own-account.ts';
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ForbiddenError,
  isRefusal,
  NotFoundError,
  TransportError,
} from '../../kube/client/api-error.ts';
import type { CallOptions, KubeClient } from '../../kube/client/kube-client.ts';
import { leases, lockVerbs } from '../../kube/election/lease-record.ts';
import type { KubeObject, ObjectMeta, Resource } from '../../kube/kube-object.ts';

/** Where a journal is. */
export interface JournalLocation {
  client: KubeClient;
  /** Of the lock. */
  namespace: string;
  /** Name of the lock: the shards are `<lock name>-journal-0` and so on. */
  lockName: string;
}

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
const journalLeases: Resource = { ...leases, verbs: lockVerbs };
/** The same for a process that also looks for other journals. */
export const listedJournalLeases: Resource = { ...leases, verbs: ['get', 'list', 'create', 'update'] };

/** The API server accepted a write, and has stored something else: nothing is protected by it. */
class ShardAlteredError extends Error {
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
  readonly #journal: JournalLocation;
  readonly #options: CallOptions;

  /** @param options.signal - aborts every request. Default: none is aborted. */
  constructor(options: JournalLocation & { signal?: AbortSignal | undefined }) {
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

/**
 * What an error of a request means for the journal.
 *
 * - `conflict`: the shard has changed since it was read.
 * - `gone`: the shard's object does not exist; after a creation: its namespace, or the whole resource.
 * - `forbidden`: a permission is missing, or the server has just started and knows no permissions yet.
 * - `refused`: the same again for as long as nobody changes the cluster.
 * - `unexpected`: neither an API error nor a connection error, so a bug in this program.
 * - `transient`: to be repeated; a write may have been carried out.
 * - `ended`: nothing leaves this process any more.
 */
type Classified = 'conflict' | 'gone' | 'forbidden' | 'refused' | 'unexpected' | 'transient' | 'ended';

/** What a failed request means to its caller: `forbidden` and `unexpected` have become `refused` or `transient`. */
export type RequestFailure = Exclude<Classified, 'forbidden' | 'unexpected'>;

/**
 * How long requests may be forbidden, or fail unexpectedly, before that counts as refused, in milliseconds: an API server that
 * has just started forbids everything until it has read its roles.
 */
export const refusalGraceMs = 3000;

interface RequestFailuresOptions {
  journal: JournalLocation & { clock: Clock };
  /** Whether this process may still write the journal, of `WriterStatus`. */
  status: Readonly<{ fencedOrEnded: AbortSignal; requestSignal: AbortSignal; hasEnded: boolean }>;
}

/** The failures of one request that is repeated until it succeeds. */
export class RequestFailures {
  readonly #options: RequestFailuresOptions;
  #uncertainSinceMs: number | undefined;

  constructor(options: RequestFailuresOptions) {
    this.#options = options;
  }

  /** What a failure means: one that is forbidden or unexpected is refused once that is certain, and transient until then. */
  async classify(error: unknown): Promise<RequestFailure> {
    const { journal, status } = this.#options;
    if (status.fencedOrEnded.aborted || status.hasEnded) return 'ended'; // whatever it is, the next try would end, too
    const failure = classifyFailure(error);
    if (failure !== 'forbidden' && failure !== 'unexpected') {
      this.#uncertainSinceMs = undefined;
      return failure;
    }
    const nowMs = journal.clock.monotonicMs();
    this.#uncertainSinceMs ??= nowMs;
    const isOver = nowMs - this.#uncertainSinceMs >= refusalGraceMs;
    return isOver || (failure === 'forbidden' && (await this.#isDenied())) ? 'refused' : 'transient';
  }

  /**
   * Whether the API server says that this process may not use the Leases of the journal: a server that has just started, and knows no
   * roles yet, forbids the question as well. False also where nobody knows, as the question is refused or not served.
   */
  async #isDenied(): Promise<boolean> {
    const { journal, status } = this.#options;
    const { client, namespace } = journal;
    const { verbs = [] } = journalLeases;
    const about = { namespace, name: new ShardStorage(journal).nameOf(0), verbs };
    try {
      return !(await mayUse(client, journalLeases, about, { optional: 'reported', signal: status.requestSignal }));
    } catch {
      return false;
    }
  }
}

function classifyFailure(error: unknown): Classified {
  if (error instanceof ConflictError || error instanceof AlreadyExistsError) return 'conflict';
  if (error instanceof NotFoundError) return 'gone';
  if (error instanceof ForbiddenError) return error.isAdmission ? 'refused' : 'forbidden';
  if (isRefusal(error) || error instanceof OtherFormatError || error instanceof ShardAlteredError) return 'refused';
  return error instanceof ApiError || error instanceof TransportError ? 'transient' : 'unexpected';
}

/** Whether an error comes neither from the API server nor the connection nor the stored data: probably a bug in this program. */
export function isUnexpected(error: unknown): boolean {
  return classifyFailure(error) === 'unexpected';
}

/** The rule to add, where a missing permission is the cause. */
export function missingRuleOf(error: Error): string | undefined {
  return error instanceof ForbiddenError && !error.isAdmission ? error.missingRule : undefined;
}
