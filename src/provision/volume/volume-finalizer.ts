import { volumeFinalizer } from '../keys.ts';
import type { PersistentVolume } from '../objects.ts';

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

/** Removes every occurrence of our finalizer from a list; the others keep their order. */
export function removeFinalizer(finalizers: readonly string[]): FinalizerChange {
  const rest = finalizers.filter((finalizer) => finalizer !== volumeFinalizer);
  if (rest.length === 0) return { finalizers: rest, patch: { metadata: { finalizers: null } } };
  return {
    finalizers: rest,
    patch: {
      metadata: { '$deleteFromPrimitiveList/finalizers': [volumeFinalizer], '$setElementOrder/finalizers': rest },
    },
  };
}
