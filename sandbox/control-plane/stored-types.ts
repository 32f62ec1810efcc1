import { builtInResources } from '../api/built-in-resources.ts';
import type { ResourceRef } from '../api/client.ts';

/** A kind of stored object as the controllers that work on every kind see it. */
export interface StoredType {
  ref: ResourceRef;
  kind: string;
  namespaced: boolean;
  /** Name of the storage, unique among the types. */
  storage: string;
}

/** Every built-in type once, also where two groups show the same objects. */
export function storedTypes(): StoredType[] {
  const byStorage = new Map<string, StoredType>();
  for (const { group, versions, plural, kind, namespaced, storage } of builtInResources) {
    if (byStorage.has(storage)) continue;
    byStorage.set(storage, { ref: { group, version: versions[0] ?? 'v1', plural }, kind, namespaced, storage });
  }
  return [...byStorage.values()];
}
