import type { ObjectReference } from '../kube/objects.ts';
import { provisionedByKey, volumeFinalizer } from './keys.ts';
import type { PersistentVolume } from './objects.ts';

/** The volume as it will be saved: what a provisioner returned, completed by what is the controller's to say. */
export function completeVolume(
  volume: PersistentVolume,
  options: { claim: ObjectReference; className: string; provisionedBy: string; addFinalizer: boolean },
): PersistentVolume {
  const { finalizers = [], annotations } = volume.metadata;
  const missing = options.addFinalizer && !finalizers.includes(volumeFinalizer);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    ...volume,
    metadata: {
      ...volume.metadata,
      annotations: { ...annotations, [provisionedByKey]: options.provisionedBy },
      ...(missing && { finalizers: [...finalizers, volumeFinalizer] }),
    },
    spec: { ...volume.spec, claimRef: options.claim, storageClassName: options.className },
  };
}
