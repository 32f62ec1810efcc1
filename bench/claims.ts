import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from '../src/provision/objects.ts';
import type { BenchCluster } from './bench-cluster.ts';

export async function createClass({ client }: BenchCluster, name: string, provisioner: string): Promise<void> {
  await client.create<StorageClass>(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner,
    reclaimPolicy: 'Delete',
  });
}

/** Creates a claim in the namespace `default`. @returns the name that its volume will have. */
export async function createClaim({ client }: BenchCluster, name: string, storageClassName: string): Promise<string> {
  const { metadata } = await client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: {
      storageClassName,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  });
  return `pvc-${metadata.uid ?? ''}`;
}

export async function deleteClaim({ client }: BenchCluster, name: string): Promise<void> {
  await client.delete(persistentVolumeClaims, { namespace: 'default', name });
}
