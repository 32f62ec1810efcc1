import { volumeFinalizer } from './keys.ts';
import type { PersistentVolume } from './objects.ts';

/** Whether the storage of one of our volumes is to be deleted now; the deletion guard was asked before. */
export function shouldDelete(volume: PersistentVolume, addFinalizer: boolean): boolean {
  const { deletionTimestamp, finalizers = [] } = volume.metadata;
  // being deleted without our finalizer: this was done before, or is not ours to do
  if (deletionTimestamp !== undefined && !(addFinalizer && finalizers.includes(volumeFinalizer))) return false;
  return volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
}
