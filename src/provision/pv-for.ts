import { volumeTemplate } from './claim/complete-volume.ts';
import type { PersistentVolume, VolumeSources } from './objects.ts';
import type { ProvisionOptions } from './provisioner.ts';

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
