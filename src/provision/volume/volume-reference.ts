import type { ObjectReference } from '../../kube/kube-object.ts';
import type { PersistentVolume } from '../objects.ts';

/** A volume as the object of an event. */
export function volumeReference({ metadata: { name, uid, resourceVersion } }: PersistentVolume): ObjectReference {
  return {
    kind: 'PersistentVolume',
    apiVersion: 'v1',
    name,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}
