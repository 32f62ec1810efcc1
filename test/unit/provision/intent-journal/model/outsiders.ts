/** Those who act beside the processes, at any moment and also while none runs: an administrator, and another provisioner. */
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../../src/provision/objects.ts';
import { selectedNode } from '../../../../../src/provision/claim-fields.ts';
import { BackendError, type BackendVolume } from './backend.ts';
import { argsOf, driverName } from './sim-provisioner.ts';
import { isOurs, type World } from './world.ts';

/** Volumes that are in use, or about to be. */
export function usedVolumes({ volumes }: World): PersistentVolume[] {
  return volumes.filter(({ status, spec }) => status?.phase !== 'Released' && spec.claimRef !== undefined);
}

/** Retains a volume, then removes its claim and the volume, as one moves storage to another cluster. */
export function keepStorage(world: World, volume: PersistentVolume): void {
  const { api } = world;
  const { name } = volume.metadata;
  api.edit<PersistentVolume>('persistentvolumes', name, ({ spec }) => {
    spec.persistentVolumeReclaimPolicy = 'Retain';
  });
  removeClaimOf(world, volume);
  api.edit<PersistentVolume>('persistentvolumes', name, (it) => {
    it.status = { phase: 'Released' };
  });
  world.ledger.keep(volume.spec.csi?.volumeHandle ?? '');
  api.remove('persistentvolumes', name);
}

/** Imports the storage of a volume under another name, then removes the volume and its claim. */
export function renameVolume(world: World, volume: PersistentVolume): void {
  world.adopt(volume.spec.csi?.volumeHandle ?? '');
  keepStorage(world, volume);
}

function removeClaimOf({ api }: World, { spec: { claimRef } }: PersistentVolume): void {
  const key = `${claimRef?.namespace ?? ''}/${claimRef?.name ?? ''}`;
  const claim = api.find<PersistentVolumeClaim>('persistentvolumeclaims', key);
  if (claim?.metadata.uid === claimRef?.uid) api.remove('persistentvolumeclaims', key);
}

/** A provisioner that keeps no records serves all claims and reclaims all volumes, once. */
export function workAsAnother(world: World): void {
  world.backend.noMoreFaults(); // what it leaves behind itself is not ours to find
  for (const claim of world.claims) if (isOurs(claim) && (claim.spec.volumeName ?? '') === '') serve(world, claim);
  world.bind();
  for (const { metadata, spec, status } of world.volumes) {
    if (status?.phase !== 'Released' || spec.persistentVolumeReclaimPolicy !== 'Delete') continue;
    world.backend.volumes.delete(spec.csi?.volumeHandle ?? '');
    world.api.remove('persistentvolumes', metadata.name);
  }
}

function serve({ api, backend, network }: World, claim: PersistentVolumeClaim): void {
  const { metadata, spec } = claim;
  const { namespace = '', name: claimName, uid = '' } = metadata;
  const name = `pvc-${uid}`;
  const storageClass = api.all('storageclasses').find((each) => each.metadata.name === spec.storageClassName);
  if (storageClass === undefined || api.find('persistentvolumes', name) !== undefined) return;
  const { parameters, reclaimPolicy } = storageClass as { parameters?: Record<string, string>; reclaimPolicy?: string };
  let made: BackendVolume;
  try {
    made = backend.create(name, argsOf({ parameters }, selectedNode(claim)), network.nowMs);
  } catch (error) {
    if (error instanceof BackendError) return; // it gives up
    throw error;
  }
  if (made.unfit) {
    backend.volumes.delete(made.handle);
    return;
  }
  api.put<PersistentVolume>('persistentvolumes', {
    metadata: { name },
    spec: {
      claimRef: { namespace, name: claimName, uid },
      csi: { driver: driverName, volumeHandle: made.handle },
      storageClassName: spec.storageClassName ?? '',
      persistentVolumeReclaimPolicy: reclaimPolicy === 'Retain' ? 'Retain' : 'Delete',
    },
    status: { phase: 'Pending' },
  });
}
