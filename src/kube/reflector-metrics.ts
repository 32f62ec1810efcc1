import { counter, type MetricRegistry } from '../base/metrics.ts';
import type { ReflectorMetrics } from './reflector.ts';

/**
 * Registers the `reflector_*` families and makes the metrics of each resource; its series stand at zero from then on.
 *
 * @throws {Error} when the registry has them already.
 */
export function reflectorMetrics(registry: MetricRegistry): (resource: string) => ReflectorMetrics {
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
    help: 'Lists and watches that failed, by reason; Forbidden means that a right is missing',
  });
  return (resource) => {
    for (const family of [lists, watches, shortWatches]) family.inc({ resource }, 0);
    errors.inc({ resource, reason: 'Forbidden' }, 0);
    return {
      listed: () => lists.inc({ resource }),
      watched: () => watches.inc({ resource }),
      shortWatch: () => shortWatches.inc({ resource }),
      failed: (reason) => errors.inc({ resource, reason }),
    };
  };
}
