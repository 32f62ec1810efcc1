import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../kube/kube-object.ts';

/** Whether two cached forms of an object differ in nothing but the resource version. */
export function sameButVersion<T extends KubeObject>(old: T, object: T): boolean {
  const { resourceVersion } = object.metadata;
  return isDeepStrictEqual({ ...old, metadata: { ...old.metadata, resourceVersion } }, object);
}
