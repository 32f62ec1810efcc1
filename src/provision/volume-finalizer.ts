import { volumeFinalizer } from './keys.ts';
import type { PersistentVolume } from './objects.ts';

/** The finalizers a volume should have and the strategic merge patch that leads there. */
export interface FinalizerChange {
  finalizers: string[];
  patch: { metadata: Record<string, unknown> };
}

/**
 * The change that our finalizer on a volume needs; undefined when it is right. It is kept while the storage is to be
 * deleted by us (policy Delete), else removed.
 */
export function finalizerUpkeep(volume: PersistentVolume, addFinalizer: boolean): FinalizerChange | undefined {
  const { finalizers = [], deletionTimestamp } = volume.metadata;
  const present = finalizers.includes(volumeFinalizer);
  const policy = volume.spec.persistentVolumeReclaimPolicy;
  if (!addFinalizer || policy === 'Retain' || policy === 'Recycle') {
    return present ? removeFinalizer(finalizers) : undefined;
  }
  const wanted = policy === 'Delete' && volume.status?.phase === 'Bound' && deletionTimestamp === undefined;
  return wanted && !present ? addToFinalizers(finalizers) : undefined;
}

function addToFinalizers(finalizers: readonly string[]): FinalizerChange {
  const all = [...finalizers, volumeFinalizer];
  const order = finalizers.length === 0 ? {} : { '$setElementOrder/finalizers': all };
  return { finalizers: all, patch: { metadata: { ...order, finalizers: [volumeFinalizer] } } };
}

/**
 * Removes every occurrence of our finalizer from a list; the others keep their order, and so do those that were added since
 * the list was read.
 */
export function removeFinalizer(finalizers: readonly string[]): FinalizerChange {
  const rest = finalizers.filter((finalizer) => finalizer !== volumeFinalizer);
  const order = rest.length === 0 ? {} : { '$setElementOrder/finalizers': rest };
  const removed = { '$deleteFromPrimitiveList/finalizers': [volumeFinalizer] };
  return { finalizers: rest, patch: { metadata: { ...removed, ...order } } };
}
