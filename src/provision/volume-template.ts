/** What a PersistentVolume is made of: by its provisioner, its claim and its class. */
import { claimReference, className } from './claim-fields.ts';
import type { VolumeTemplate } from './intent-journal/intent-journal.ts';
import {
  type PersistentVolume,
  type PersistentVolumeSpec,
  provisionedByKey,
  volumeFinalizer,
  type VolumeSources,
} from './objects.ts';
import { IgnoredError, type ProvisionOptions } from './provisioner.ts';

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

/** What a volume is made of: claim and class decide the rest. */
export interface PvForOptions extends Pick<ProvisionOptions, 'claim' | 'storageClass' | 'volumeName'> {
  /** Where the storage is: exactly one kind, such as `{ nfs: { server, path } }`. */
  source: Partial<VolumeSources>;
  annotations?: Readonly<Record<string, string>>;
  labels?: Readonly<Record<string, string>>;
}

/**
 * The PersistentVolume of a claim: named as the controller wants it, with the capacity, access modes and volume mode that
 * the claim requests, and the mount options and the reclaim policy of the class (without one `Delete`, as the API server
 * has it for classes). It shares nothing with the objects it was made from, so it may be changed.
 *
 * @see Kubernetes, "Persistent Volumes", section "Reclaiming"; core/v1 PersistentVolumeSpec.
 */
export function pvFor({
  claim,
  storageClass,
  volumeName,
  source,
  annotations,
  labels,
}: PvForOptions): PersistentVolume {
  const { defaults } = volumeTemplate({ claim, storageClass, volumeName });
  return {
    metadata: {
      name: volumeName,
      ...(annotations && { annotations: { ...annotations } }),
      ...(labels && { labels: { ...labels } }),
    },
    spec: { persistentVolumeReclaimPolicy: 'Delete', ...defaults, ...structuredClone(source) },
  };
}

/**
 * Lets `delete` go on only where this instance created the storage: for provisioners of which several serve one name, each with
 * storage of its own. `provision` puts the identity on the volume; it must survive a restart.
 *
 * @param key - the annotation of the volume that names the instance which created it.
 * @throws {IgnoredError} when it names another instance, which has to delete the volume; no event is recorded.
 * @throws {Error} when the volume has no such annotation: it is not known whose it is.
 */
export function requireIdentity(volume: PersistentVolume, key: string, identity: string): void {
  const found = volume.metadata.annotations?.[key];
  if (found === undefined) throw new Error('identity annotation not found on PV');
  if (found !== identity) throw new IgnoredError('identity annotation on PV does not match ours');
}
