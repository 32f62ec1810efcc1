import { claimReference, className } from './claim-facts.ts';
import { provisionedByKey, volumeFinalizer } from './keys.ts';
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass } from './objects.ts';

/**
 * The volume as it will be saved: what a provisioner returned, completed by the fields that the controller sets and,
 * where they are absent, by those of the class and the claim. Shares no objects with either.
 */
export function completeVolume(
  volume: PersistentVolume,
  options: { claim: PersistentVolumeClaim; storageClass: StorageClass; addFinalizer: boolean },
): PersistentVolume {
  const { claim, storageClass, addFinalizer } = options;
  const { finalizers = [], annotations } = volume.metadata;
  const missing = addFinalizer && !finalizers.includes(volumeFinalizer);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    ...volume,
    metadata: {
      ...volume.metadata,
      annotations: { ...annotations, [provisionedByKey]: storageClass.provisioner },
      ...(missing && { finalizers: [...finalizers, volumeFinalizer] }),
    },
    spec: {
      ...volume.spec,
      ...requested(volume.spec, claim, storageClass),
      claimRef: claimReference(claim),
      storageClassName: className(claim),
    },
  };
}

/** Defaults from class and claim for what the spec leaves out. Without a reclaim policy Kubernetes would use Retain. */
function requested(
  spec: PersistentVolumeSpec,
  { spec: { accessModes, volumeMode, resources } }: PersistentVolumeClaim,
  { reclaimPolicy, mountOptions = [] }: StorageClass,
): PersistentVolumeSpec {
  const storage = resources?.requests?.['storage'];
  return {
    ...(spec.capacity === undefined && storage !== undefined && { capacity: { storage } }),
    ...(spec.accessModes === undefined && accessModes !== undefined && { accessModes: [...accessModes] }),
    ...(spec.volumeMode === undefined && volumeMode !== undefined && { volumeMode }),
    ...(spec.mountOptions === undefined && mountOptions.length > 0 && { mountOptions: [...mountOptions] }),
    ...(spec.persistentVolumeReclaimPolicy === undefined &&
      reclaimPolicy !== undefined && { persistentVolumeReclaimPolicy: reclaimPolicy }),
  };
}
