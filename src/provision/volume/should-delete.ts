import { volumeFinalizer } from '../keys.ts';
import type { PersistentVolume } from '../objects.ts';

/** Whether the storage of one of our volumes is to be deleted now; `shouldDelete` of the provisioner was called before. */
export function shouldDelete(volume: PersistentVolume, addFinalizer: boolean): boolean {
  const { deletionTimestamp, finalizers = [] } = volume.metadata;
  // being deleted without our finalizer: the storage is gone already, or not ours to delete
  if (deletionTimestamp !== undefined && !(addFinalizer && finalizers.includes(volumeFinalizer))) return false;
  return volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
}

/**
 * How old what the cache shows of a released volume may be without a doubt, in milliseconds. The API server gives the time of the release
 * in whole seconds; its event, and what precedes the deletion, take some more milliseconds.
 */
export const promptMs = 2000;

/** Whether a volume was released a moment ago. An API server before Kubernetes 1.29 does not say when that was: then it counts as new. */
export function isJustReleased({ status }: PersistentVolume, nowMs: number): boolean {
  const ageMs = nowMs - Date.parse(status?.lastPhaseTransitionTime ?? '');
  return Number.isNaN(ageMs) || ageMs <= promptMs;
}
