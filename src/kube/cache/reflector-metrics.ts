import { counter, gauge, type MetricRegistry } from '../../base/metrics.ts';

/** What a reflector reports about one resource. */
export interface ReflectorMetrics {
  listed(): void;
  watched(): void;
  /** A watch ended at once and without an event. */
  shortWatch(): void;
  failed(reason: string): void;
  /** Reports from now on how long nothing has come from the API server, in milliseconds. @returns a function that ends this. */
  follow?(silentMs: () => number): () => void;
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
    help: 'Lists and watches that failed, by reason; Forbidden counts requests of every verb for which a permission is missing',
  });
  const silences = new Map<string, Set<() => number>>();
  gauge({
    registry,
    labels,
    name: 'reflector_silence_seconds',
    help: 'Seconds since something about a resource last came from the API server, which sends a bookmark each minute',
    collect: (seconds) => {
      for (const [resource, running] of silences) {
        if (running.size === 0) seconds.remove({ resource });
        else seconds.set({ resource }, Math.max(...[...running].map((silentMs) => silentMs())) / 1000);
      }
    },
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
      follow: (silentMs) => {
        const running = silences.get(resource) ?? new Set();
        silences.set(resource, running.add(silentMs));
        return () => running.delete(silentMs);
      },
    };
  };
  return { forResource, forbidden: (resource) => forbidden(resource) };
}
