import { createRegistry } from '../../src/base/metrics.ts';
import type { ReflectorMetrics } from '../../src/kube/cache/reflector-metrics.ts';
import { reflectorMetrics } from '../../src/kube/cache/reflector-metrics.ts';

/** Metrics of caches that nobody reads. */
export const noReflectorMetrics: (resource: string) => ReflectorMetrics = reflectorMetrics(
  createRegistry(),
  [],
).forResource;
