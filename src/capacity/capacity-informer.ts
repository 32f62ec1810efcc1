import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { Informer } from '../kube/cache/informer.ts';
import type { ReflectorMetrics } from '../kube/cache/reflector-metrics.ts';
import type { Transport } from '../kube/client/transport.ts';
import { withoutManagedFields } from '../provision/cache/informers.ts';
import { capacitySelector, type ObjectFrame } from './desired-object.ts';
import type { StorageCapacity } from './storage-capacity.ts';

/** The cache of our own objects: those in our namespace with our labels. Whole, since they are written back. */
export function capacityInformer(options: {
  transport: Transport;
  frame: Pick<ObjectFrame, 'resource' | 'namespace' | 'driverName' | 'managedBy'>;
  metrics?: ReflectorMetrics | undefined;
  clock: Clock;
  logger: Logger;
  /** Makes writes into cached objects throw: for tests. Default false. */
  freeze?: boolean;
}): Informer<StorageCapacity> {
  const { frame, ...rest } = options;
  return new Informer<StorageCapacity>({
    ...rest,
    resource: frame.resource,
    namespace: frame.namespace,
    labelSelector: capacitySelector(frame),
    transform: withoutManagedFields<StorageCapacity>,
  });
}
