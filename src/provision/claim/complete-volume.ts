import { claimReference, className } from '../claim-fields.ts';
import type { VolumeTemplate } from '../intent-journal/intent-record.ts';
import { type PersistentVolume, type PersistentVolumeSpec, provisionedByKey, volumeFinalizer } from '../objects.ts';
import type { ProvisionOptions } from '../provisioner.ts';

/** What claim and class contribute to the volume. Without a reclaim policy Kubernetes would use Retain. */
export function volumeTemplate({
  claim,
  storageClass,
  volumeName,
}: Pick<ProvisionOptions, 'claim' | 'storageClass' | 'volumeName'>): VolumeTemplate {
  const { accessModes, volumeMode, resources } = claim.spec;
  const { reclaimPolicy, mountOptions = [] } = storageClass;
  const storage = resources?.requests?.['storage'];
  return {
    name: volumeName,
    claimRef: claimReference(claim),
    className: className(claim),
    provisioner: storageClass.provisioner,
    defaults: {
      ...(storage !== undefined && { capacity: { storage } }),
      ...(accessModes !== undefined && { accessModes: [...accessModes] }),
      ...(volumeMode !== undefined && { volumeMode }),
      ...(mountOptions.length > 0 && { mountOptions: [...mountOptions] }),
      ...(reclaimPolicy !== undefined && { persistentVolumeReclaimPolicy: reclaimPolicy }),
    },
  };
}

/**
 * The volume as it will be saved: what a provisioner returned, completed by the fields that the controller sets and,
 * where they are absent, by those of the class and the claim.
 *
 * @throws {TypeError} when the provisioner returned none.
 */
export function completeVolume(
  volume: PersistentVolume | undefined,
  { claimRef, className, provisioner, defaults }: VolumeTemplate,
  { addFinalizer }: { addFinalizer: boolean },
): PersistentVolume {
  if (volume?.metadata === undefined) throw new TypeError('the provisioner returned no PersistentVolume');
  const { finalizers = [], annotations } = volume.metadata;
  const missing = addFinalizer && !finalizers.includes(volumeFinalizer);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    ...volume,
    metadata: {
      ...volume.metadata,
      annotations: { ...annotations, [provisionedByKey]: provisioner },
      ...(missing && { finalizers: [...finalizers, volumeFinalizer] }),
    },
    spec: {
      ...defaults,
      ...withoutAbsent(volume.spec),
      claimRef,
      storageClassName: className,
    },
  };
}

/** A field that is set to undefined counts as absent. */
function withoutAbsent(spec: PersistentVolumeSpec): PersistentVolumeSpec {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));
}
