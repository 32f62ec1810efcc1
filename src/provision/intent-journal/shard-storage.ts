/** The objects of the API that keep a journal's shards. */
import type { KubeClient } from '../../kube/kube-client.ts';
import type { KubeObject, ObjectMeta, Resource } from '../../kube/kube-object.ts';
import { NotFoundError } from '../../kube/api-error.ts';
import { leases } from '../../kube/lease-record.ts';

/** The kind of objects that keep the shards. */
export type JournalBacking = 'lease' | 'configmap';

/** A shard as the API server has it. */
export interface ShardObject {
  uid: string;
  /** The object without our entries. */
  rest: KubeObject & { metadata: ObjectMeta & { resourceVersion: string } };
  /** Our entries, by key without a prefix. */
  entries: Map<string, string>;
  /** What an operator wants to have discarded. */
  discard: string;
}

/** In front of the keys of annotations. */
const annotationPrefix = 'csi-provisioner.journal/';
const discardKey = `${annotationPrefix}discard`;

const verbs = ['get', 'create', 'update'];
const resources: Record<JournalBacking, Resource> = {
  lease: { ...leases, verbs },
  configmap: { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true, verbs },
};

/** The API server accepted a write, and has stored something else: nothing is protected by it. */
export class ShardAlteredError extends Error {
  override readonly name = 'ShardAlteredError';

  constructor(shard: string, key: string) {
    super(
      `the API server stored ${shard} without annotation or key ${JSON.stringify(key)} as it was sent: an admission webhook or policy changes it`,
    );
  }
}

/** Reads and writes shards: one request each. Every method throws `ApiError` and `TransportError`. */
export class ShardStorage {
  readonly resource: Resource;
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #lockName: string;
  readonly #inAnnotations: boolean;

  constructor(options: { client: KubeClient; backing: JournalBacking; namespace: string; lockName: string }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#lockName = options.lockName;
    this.#inAnnotations = options.backing === 'lease';
    this.resource = resources[options.backing];
  }

  /** Name of the object of a shard. */
  nameOf(index: number): string {
    return `${this.#lockName}-journal-${index}`;
  }

  /** Undefined when there is none. */
  async read(index: number): Promise<ShardObject | undefined> {
    const name = { namespace: this.#namespace, name: this.nameOf(index) };
    try {
      return this.#parse(await this.#client.get<ConfigMapLike>(this.resource, name, { optional: 'reported' }));
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Creates it without entries. */
  async create(index: number): Promise<ShardObject> {
    const { group, version, kind } = this.resource;
    const object: ConfigMapLike = {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind,
      metadata: { namespace: this.#namespace, name: this.nameOf(index) },
    };
    return this.#parse(await this.#client.create(this.resource, object, { optional: 'reported' }));
  }

  /**
   * Replaces all entries, on the condition that the object has not changed since it was read.
   *
   * Keeps the object's new resource version.
   *
   * @returns whether it is still the same object. Kubernetes makes a new Lease where an update finds none.
   * @throws {ShardAlteredError} when something else was stored.
   */
  async update(shard: ShardObject, entries: Record<string, string>, discard: string): Promise<boolean> {
    const { rest } = shard;
    const { annotations: others, ...metadata } = rest.metadata;
    const annotations: Record<string, string> = { ...others, ...(discard !== '' && { [discardKey]: discard }) };
    if (this.#inAnnotations) for (const key in entries) annotations[annotationPrefix + key] = entries[key] ?? '';
    const object: ConfigMapLike = { ...rest, metadata: { ...metadata, annotations } };
    if (!this.#inAnnotations) object.data = { ...(rest as ConfigMapLike).data, ...entries };
    const answer = await this.#client.update(this.resource, object, { optional: 'reported' });
    const { uid = '', resourceVersion = '' } = answer.metadata;
    const isSame = uid === shard.uid;
    shard.uid = rest.metadata.uid = uid;
    rest.metadata.resourceVersion = resourceVersion;
    if (!isSame) return false;
    const stored = this.#parse(answer).entries;
    for (const key in entries) {
      if (stored.get(key) !== entries[key]) throw new ShardAlteredError(rest.metadata.name, key);
    }
    return true;
  }

  #parse(object: ConfigMapLike): ShardObject {
    const { annotations = {}, ...metadata } = object.metadata;
    delete (metadata as { managedFields?: unknown }).managedFields; // large, and kept by the server when left out
    const others: Record<string, string> = {};
    const entries = new Map(this.#inAnnotations ? [] : Object.entries(object.data ?? {}));
    for (const [key, value] of Object.entries(annotations)) {
      if (this.#inAnnotations && key.startsWith(annotationPrefix))
        entries.set(key.slice(annotationPrefix.length), value);
      else if (key !== discardKey) others[key] = value;
    }
    const discard = annotations[discardKey] ?? '';
    if (this.#inAnnotations) entries.delete('discard');
    const rest = { ...object, metadata: { resourceVersion: '', ...metadata, annotations: others } };
    if (!this.#inAnnotations) delete rest.data;
    return { uid: metadata.uid ?? '', rest, entries, discard };
  }
}

interface ConfigMapLike extends KubeObject {
  data?: Record<string, string>;
}
