import { createRegistry } from '../../../src/base/metrics.ts';
import type { ReflectorMetrics } from '../../../src/kube/reflector-metrics.ts';
import { reflectorMetrics } from '../../../src/kube/reflector-metrics.ts';

/** Metrics of caches that nobody reads. */
export const noReflectorMetrics: (resource: string) => ReflectorMetrics = reflectorMetrics(
  createRegistry(),
  [],
).forResource;
