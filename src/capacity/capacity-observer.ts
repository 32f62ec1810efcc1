import type { Logger } from '../base/logger.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import type { ProvisionObserver } from '../provision/provision-controller-options.ts';
import type { CapacityController } from './capacity-controller.ts';
import { segmentOfTerm } from './segment.ts';

/**
 * Refreshes capacity where a success or a failure shows that it has changed, or differs from what was published.
 */
export function capacityObserver(options: {
  capacity: Pick<CapacityController, 'refreshClass' | 'refreshSegment'>;
  logger: Logger;
}): ProvisionObserver {
  const { capacity, logger } = options;
  const refreshSegmentsOf = ({ metadata: { name }, spec: { nodeAffinity } }: PersistentVolume): void => {
    const terms = nodeAffinity?.required?.nodeSelectorTerms ?? [];
    const segments = terms.flatMap((term) => segmentOfTerm(term) ?? []);
    for (const segment of segments) capacity.refreshSegment(segment);
    if (segments.length === terms.length && terms.length > 0) return;
    logger.warn({ volume: name }, 'The node affinity of a volume names no segment, its capacity is not refreshed');
  };
  return {
    onProvisioned(volume, { storageClass }) {
      // without node affinity the volume may be in any segment
      if (volume.spec.nodeAffinity === undefined) capacity.refreshClass(storageClass.metadata.name);
      else refreshSegmentsOf(volume);
    },
    onProvisionFailed({ state }, { storageClass }) {
      if (state !== 'no-change') capacity.refreshClass(storageClass.metadata.name);
    },
    onDeleted(volume) {
      if (volume.spec.nodeAffinity !== undefined) refreshSegmentsOf(volume);
    },
  };
}
