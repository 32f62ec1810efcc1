import { counter, type MetricRegistry } from '../base/metrics.ts';

/** What a reflector reports about one resource. */
export interface ReflectorMetrics {
  listed(): void;
  watched(): void;
  /** A watch ended at once and without an event. */
  shortWatch(): void;
  failed(reason: string): void;
}

export interface ReflectorMetricsProvider {
  /** Makes the metrics of a resource that is listed and watched; its series are zero from then on. */
  forResource: (resource: string) => ReflectorMetrics;
  /** Counts a request that was forbidden, whatever its verb. */
  forbidden: (resource: string) => void;
}

/**
 * Registers the `reflector_*` families.
 *
 * @param requested - resources that are not, or not always, listed and watched: their count of forbidden requests
 * is zero from now on.
 * @throws {Error} when the registry has them already.
 */
export function reflectorMetrics(registry: MetricRegistry, requested: readonly string[]): ReflectorMetricsProvider {
  const labels = ['resource'] as const;
  const lists = counter({ registry, labels, name: 'reflector_lists_total', help: 'Lists of a resource read in pages' });
  const watches = counter({ registry, labels, name: 'reflector_watches_total', help: 'Watches of a resource opened' });
  const shortWatches = counter({
    registry,
    labels,
    name: 'reflector_short_watches_total',
    help: 'Watches that ended at once and without an event',
  });
  const errors = counter({
    registry,
    labels: ['resource', 'reason'],
    name: 'reflector_errors_total',
    help: 'Lists and watches that failed, by reason; Forbidden counts requests of every verb for which a right is missing',
  });
  const forbidden = (resource: string, times = 1): void => errors.inc({ resource, reason: 'Forbidden' }, times);
  for (const resource of requested) forbidden(resource, 0);
  const forResource = (resource: string): ReflectorMetrics => {
    for (const family of [lists, watches, shortWatches]) family.inc({ resource }, 0);
    forbidden(resource, 0);
    return {
      listed: () => lists.inc({ resource }),
      watched: () => watches.inc({ resource }),
      shortWatch: () => shortWatches.inc({ resource }),
      failed: (reason) => errors.inc({ resource, reason }),
    };
  };
  return { forResource, forbidden: (resource) => forbidden(resource) };
}
