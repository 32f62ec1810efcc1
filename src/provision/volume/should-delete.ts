import { volumeFinalizer } from '../keys.ts';
import type { PersistentVolume } from '../objects.ts';

/** Whether the storage of one of our volumes is to be deleted now; `shouldDelete` of the provisioner was called before. */
export function shouldDelete(volume: PersistentVolume, addFinalizer: boolean): boolean {
  const { deletionTimestamp, finalizers = [] } = volume.metadata;
  // being deleted without our finalizer: the storage is gone already, or not ours to delete
  if (deletionTimestamp !== undefined && !(addFinalizer && finalizers.includes(volumeFinalizer))) return false;
  return volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
}
