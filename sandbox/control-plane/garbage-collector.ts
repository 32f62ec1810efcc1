import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type {
  SandboxClient,
  SandboxName,
  SandboxObject,
  SandboxOwner,
  Subscription,
  WatchEvent,
} from '../api/client.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { MultiMap } from './mirror.ts';
import { getObject, keyOf, listObjects, nameOf, subscribeTo } from './object-access.ts';
import { type StoredType, storedTypes } from './stored-types.ts';

/** What a `GarbageCollector` needs. */
interface GarbageCollectorOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
}

const orphanFinalizer = 'orphan';
const foregroundFinalizer = 'foregroundDeletion';

/**
 * Deletes objects all of whose owners are gone, and carries out the deletion policies `Orphan` and `Foreground`
 * (Kubernetes, "Garbage Collection").
 */
export class GarbageCollector implements Disposable {
  readonly #client: SandboxClient;
  readonly #worker: KeyedWorker;
  readonly #types = new Map(storedTypes().map((type) => [type.storage, type]));
  readonly #graph = new OwnerGraph();
  /** Owners in foreground deletion by uid: they wait for their dependents. */
  readonly #foreground = new Map<string, string>();
  readonly #subscriptions: Subscription[] = [];

  constructor({ client, clock, logger }: GarbageCollectorOptions) {
    this.#client = client;
    this.#worker = new KeyedWorker({ name: 'garbage', clock, logger, sync: (key) => this.#sync(key) });
  }

  start(): void {
    for (const type of this.#types.values()) {
      this.#subscriptions.push(subscribeTo(this.#client, type.ref, (event) => this.#onEvent(type, event)));
      for (const object of listObjects(this.#client, type.ref)) this.#take(type, object);
    }
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription.close();
    this.#worker[Symbol.dispose]();
  }

  #onEvent(type: StoredType, { type: change, object }: WatchEvent): void {
    if (change !== 'DELETED') {
      this.#take(type, object);
      return;
    }
    const { uid = '', ownerReferences = [] } = object.metadata;
    this.#graph.delete(type, object);
    this.#foreground.delete(uid);
    for (const dependent of this.#graph.dependentsOf(uid)) this.#worker.add(graphKey(dependent.type, dependent.name));
    for (const owner of ownerReferences) {
      const waiting = this.#foreground.get(owner.uid);
      if (waiting !== undefined) this.#worker.add(waiting);
    }
  }

  #take(type: StoredType, object: SandboxObject): void {
    const { uid = '', ownerReferences = [], deletionTimestamp, finalizers = [] } = object.metadata;
    this.#graph.set(type, object);
    const key = graphKey(type, object.metadata);
    if (deletionTimestamp === undefined) {
      if (ownerReferences.length > 0) this.#worker.add(key);
      return;
    }
    if (finalizers.includes(foregroundFinalizer)) this.#foreground.set(uid, key);
    if (finalizers.includes(foregroundFinalizer) || finalizers.includes(orphanFinalizer)) this.#worker.add(key);
  }

  #sync(key: string): void {
    const colon = key.indexOf(':');
    const type = this.#types.get(key.slice(0, colon));
    if (type === undefined) return;
    const name = nameOf(key.slice(colon + 1));
    const object = getObject(this.#client, type.ref, name);
    if (object === undefined) return;
    const { deletionTimestamp, finalizers = [], ownerReferences = [], uid } = object.metadata;
    if (deletionTimestamp !== undefined) {
      if (finalizers.includes(orphanFinalizer)) this.#orphanDependents(type, object);
      else if (finalizers.includes(foregroundFinalizer)) this.#deleteInForeground(type, object);
      return;
    }
    if (ownerReferences.length === 0 || ownerReferences.some((owner) => this.#exists(owner, name.namespace))) return;
    this.#client.delete(type.ref, name, uid === undefined ? {} : { uid });
  }

  /** An owner of a kind that is not served here counts as existing, as it cannot be looked up. */
  #exists({ apiVersion, kind, name, uid }: SandboxOwner, namespace: string | undefined): boolean {
    const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
    const type = [...this.#types.values()].find(
      (candidate) => candidate.ref.group === group && candidate.kind === kind,
    );
    if (type === undefined) return true;
    const owner = getObject(
      this.#client,
      type.ref,
      type.namespaced && namespace !== undefined ? { namespace, name } : { name },
    );
    return owner?.metadata.uid === uid;
  }

  #orphanDependents(type: StoredType, owner: SandboxObject): void {
    const { uid = '' } = owner.metadata;
    for (const { dependent, object } of this.#liveDependents(uid)) {
      const ownerReferences = (object.metadata.ownerReferences ?? []).filter((reference) => reference.uid !== uid);
      this.#client.update(dependent.type.ref, { ...object, metadata: { ...object.metadata, ownerReferences } });
    }
    this.#dropFinalizer(type, owner, orphanFinalizer);
  }

  #deleteInForeground(type: StoredType, owner: SandboxObject): void {
    const { uid = '' } = owner.metadata;
    let blocked = false;
    for (const { dependent, object } of this.#liveDependents(uid)) {
      const { uid: dependentUid, deletionTimestamp, ownerReferences = [] } = object.metadata;
      if (deletionTimestamp === undefined) {
        this.#client.delete(
          dependent.type.ref,
          dependent.name,
          dependentUid === undefined ? {} : { uid: dependentUid },
        );
      }
      const gone = getObject(this.#client, dependent.type.ref, dependent.name)?.metadata.uid !== dependentUid;
      const blocks = ownerReferences.some(
        (reference) => reference.uid === uid && reference.blockOwnerDeletion === true,
      );
      blocked ||= blocks && !gone;
    }
    if (!blocked) this.#dropFinalizer(type, owner, foregroundFinalizer);
  }

  #liveDependents(uid: string): { dependent: AnyObject; object: SandboxObject }[] {
    return this.#graph.dependentsOf(uid).flatMap((dependent) => {
      const object = getObject(this.#client, dependent.type.ref, dependent.name);
      return object?.metadata.ownerReferences?.some((reference) => reference.uid === uid) === true
        ? [{ dependent, object }]
        : [];
    });
  }

  #dropFinalizer(type: StoredType, object: SandboxObject, finalizer: string): void {
    const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
    this.#client.update(type.ref, { ...object, metadata: { ...object.metadata, finalizers } });
  }
}

/** An object of any type. */
interface AnyObject {
  type: StoredType;
  name: SandboxName;
}

/** Who is owned by whom, for objects that have owners; everything else takes no memory. */
class OwnerGraph {
  readonly #dependents = new MultiMap<AnyObject>();
  readonly #entries = new Map<string, { entry: AnyObject; ownerUids: string[] }>();

  /** Takes over the object's present owners. */
  set(type: StoredType, object: SandboxObject): void {
    const key = graphKey(type, object.metadata);
    this.delete(type, object);
    const uids = (object.metadata.ownerReferences ?? []).map(({ uid }) => uid);
    if (uids.length === 0) return;
    const { namespace, name } = object.metadata;
    const entry: AnyObject = { type, name: namespace === undefined ? { name } : { namespace, name } };
    this.#entries.set(key, { entry, ownerUids: uids });
    for (const uid of uids) this.#dependents.add(uid, entry);
  }

  /** Forgets the object as a dependent; as an owner it stays until its dependents are gone. Safe to repeat. */
  delete(type: StoredType, object: SandboxObject): void {
    const key = graphKey(type, object.metadata);
    const known = this.#entries.get(key);
    if (known === undefined) return;
    for (const uid of known.ownerUids) this.#dependents.delete(uid, known.entry);
    this.#entries.delete(key);
  }

  /** The objects that name this uid among their owners. */
  dependentsOf(uid: string): AnyObject[] {
    return [...this.#dependents.get(uid)];
  }
}

/** One text for type and name, unique in the store. */
function graphKey(type: StoredType, name: SandboxName): string {
  return `${type.storage}:${keyOf({ metadata: name })}`;
}
