/** Objects of the cases, as small as a test can use them. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';

/** Our finalizer on volumes. */
export const F = 'external-provisioner.volume.kubernetes.io/finalizer';

export type Metadata = Partial<PersistentVolumeClaim['metadata']>;

/** Claim `ns/a` of class `c1` that asks for the provisioner `drv`. */
export function makeClaim(
  metadata: Metadata = {},
  spec: Partial<PersistentVolumeClaim['spec']> = {},
): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'a',
      namespace: 'ns',
      uid: 'u1',
      resourceVersion: '7',
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'drv' },
      ...metadata,
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'c1',
      volumeMode: 'Filesystem',
      ...spec,
    },
    status: { phase: 'Pending' },
  };
}

/** Volume `v` of the CSI driver `drv`, provisioned by `drv`, policy Delete. */
export function makeVolume(
  metadata: Partial<PersistentVolume['metadata']> = {},
  { phase = 'Bound', ...spec }: Partial<PersistentVolume['spec']> & { phase?: string } = {},
): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: 'v',
      uid: 'uv',
      resourceVersion: '9',
      annotations: { 'pv.kubernetes.io/provisioned-by': 'drv' },
      ...metadata,
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'c1',
      csi: { driver: 'drv', volumeHandle: 'h', volumeAttributes: { a: 'b' } },
      ...spec,
    },
    status: { phase },
  };
}

/** Class of the provisioner `drv`, Immediate. */
export function makeClass(name = 'c1', more: Partial<StorageClass> = {}): StorageClass {
  return { metadata: { name, uid: 's1' }, provisioner: 'drv', volumeBindingMode: 'Immediate', ...more };
}

/** Whether a name is `drv` or `in-tree`. */
export function isKnownProvisioner(name: string): boolean {
  return name === 'drv' || name === 'in-tree';
}
