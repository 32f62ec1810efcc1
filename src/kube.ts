/**
 * `csi-provisioner/kube`: the parts that the library is made of, for programs that need another order than `runProvisioner`, or a cache of
 * their own. They are of use without provisioning, and change more often than the rest: see `docs/versioning.md`.
 */
import './base/require-node.ts'; // first: what follows may not even load on an older Node.js

// Caches
export {
  type HandlerOptions,
  type HandlerRegistration,
  Informer,
  type InformerHandler,
  type InformerOptions,
  Tombstone,
} from './kube/cache/informer.ts';
export type { ReflectorMetrics } from './kube/cache/reflector-metrics.ts';
export type { IndexFunction } from './kube/cache/store.ts';

// Events and elections
export { EventRecorder, type EventRecorderOptions } from './kube/events/event-recorder.ts';
export { type ElectionOutcome, LeaderElector, LeaseLostError } from './kube/election/leader-elector.ts';
export type { LeaderElectorMetrics, LeaderElectorOptions } from './kube/election/leader-elector-options.ts';
export type { LockName } from './kube/election/lease-record.ts';

// Queues
export type { WaitingOrder } from './kube/queue/waiting-order.ts';
export { WorkQueue, type WorkQueueMetrics, type WorkQueueOptions } from './kube/queue/work-queue.ts';
export { workQueueMetrics, type WorkQueueMetricsProvider } from './kube/queue/work-queue-metrics.ts';
