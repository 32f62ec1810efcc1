/** What an administrator does with a volume whose storage is to stay. */
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '../../src/provision/objects.ts';
import { insist } from './world.ts';

/** Sets the policy to Retain. @returns undefined for a volume that is gone. */
export async function retain(client: KubeClient, name: string): Promise<PersistentVolume | undefined> {
  const body = { spec: { persistentVolumeReclaimPolicy: 'Retain' } };
  return await insist(
    () => client.patch<PersistentVolume>(persistentVolumes, { name }, { type: 'merge', body }),
    ['NotFound'],
  );
}

/** Deletes the claim of a volume and waits until it is gone. */
export async function deleteClaimOf(client: KubeClient, { spec }: PersistentVolume): Promise<void> {
  const { namespace = '', name = '', uid } = spec.claimRef ?? {};
  await insist(() => client.delete(persistentVolumeClaims, { namespace, name }), ['NotFound']);
  const claim = (): Promise<PersistentVolumeClaim | undefined> =>
    insist(() => client.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }), ['NotFound']);
  while ((await claim())?.metadata.uid === uid) await delay(100);
}

/** Deletes the claim of a retained volume, then the volume: its storage is used elsewhere, or imported again. */
export async function moveAway(client: KubeClient, volume: PersistentVolume): Promise<void> {
  const { name } = volume.metadata;
  await deleteClaimOf(client, volume);
  await insist(() => client.delete(persistentVolumes, { name }), ['NotFound']);
  // The sidecar, which takes its finalizer off a retained volume, may not run.
  const body = { metadata: { finalizers: null } };
  await insist(() => client.patch(persistentVolumes, { name }, { type: 'merge', body }), ['NotFound']);
}

/** Creates another PersistentVolume for the storage of a volume; nobody claims it. */
export async function importStorage(client: KubeClient, { spec }: PersistentVolume, name: string): Promise<void> {
  const { accessModes, capacity, csi, volumeMode } = spec;
  const body: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      ...(accessModes !== undefined && { accessModes }),
      ...(capacity !== undefined && { capacity }),
      ...(csi !== undefined && { csi }),
      ...(volumeMode !== undefined && { volumeMode }),
      persistentVolumeReclaimPolicy: 'Retain',
    },
  };
  await insist(() => client.create(persistentVolumes, body), ['AlreadyExists']);
}
