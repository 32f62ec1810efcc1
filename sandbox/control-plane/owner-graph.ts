import type { SandboxName, SandboxObject } from '../api/client.ts';
import { MultiMap } from './multi-map.ts';
import { keyOf } from './object-access.ts';
import type { StoredType } from './stored-types.ts';

/** An object of any type. */
export interface AnyObject {
  type: StoredType;
  name: SandboxName;
}

/** Who is owned by whom, for objects that have owners; everything else takes no memory. */
export class OwnerGraph {
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
export function graphKey(type: StoredType, name: SandboxName): string {
  return `${type.storage}:${keyOf({ metadata: name })}`;
}
