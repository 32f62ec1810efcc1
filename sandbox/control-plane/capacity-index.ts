import { parseQuantity } from '../../src/base/quantity.ts';
import type { Mirror } from './mirror.ts';
import { MultiMap } from './multi-map.ts';
import type { Node, StorageCapacity } from './objects.ts';
import { matchesLabelSelector } from './selectors.ts';

/** CSIStorageCapacity objects by class; it follows a mirror and lags as the mirror does. */
export class CapacityIndex {
  readonly #byClass = new MultiMap<StorageCapacity>();

  constructor(mirror: Mirror<StorageCapacity>) {
    mirror.listen(({ object, previous, deleted }) => {
      if (previous !== undefined) this.#byClass.delete(previous.storageClassName, previous);
      if (!deleted) this.#byClass.add(object.storageClassName, object);
    });
  }

  /** Whether a segment of the class that the node belongs to can take a volume of `size` nano units. */
  hasRoom(className: string, node: Node, size: bigint): boolean {
    for (const segment of this.#byClass.get(className)) {
      if (segment.nodeTopology === undefined) continue;
      const limit = largestVolume(segment);
      if (limit === undefined || limit < size) continue;
      if (matchesLabelSelector(segment.nodeTopology, node.metadata.labels)) return true;
    }
    return false;
  }
}

/**
 * The largest volume the segment promises, in nano units: `maximumVolumeSize` where it is known, else the free
 * capacity; `undefined` if it promises nothing (Kubernetes, "Storage Capacity").
 */
export function largestVolume({ maximumVolumeSize, capacity }: StorageCapacity): bigint | undefined {
  const text = maximumVolumeSize ?? capacity;
  return text === undefined ? undefined : parseQuantity(text).nanos;
}
