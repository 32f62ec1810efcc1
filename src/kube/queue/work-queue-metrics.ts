import { counter, gauge, histogram, type MetricRegistry } from '../../base/metrics.ts';
import type { WorkQueue, WorkQueueMetrics } from './work-queue.ts';

/** 10 ns to 10 s; the digits are those that Go prints, so that dashboards find them. */
const buckets = [1e-8, 1e-7, 1e-6, 9.999999999999999e-6, 9.999999999999999e-5, 0.001, 0.01, 0.1, 1, 10];

/** Makes the metrics of each queue, all in the families that Kubernetes controllers share. */
export interface WorkQueueMetricsProvider {
  /** All series of the queue are zero from now on. */
  readonly forQueue: (name: string) => WorkQueueMetrics;
}

/** Registers the `workqueue_*` families. @throws {Error} when the registry has them already. */
export function workQueueMetrics(registry: MetricRegistry): WorkQueueMetricsProvider {
  const labels = ['name'] as const;
  const common = { registry, labels, stability: 'BETA' } as const;
  const queues = new Map<string, Set<WorkQueue>>();
  const adds = counter({ ...common, name: 'workqueue_adds_total', help: 'Keys added to the queue' });
  const retries = counter({
    ...common,
    name: 'workqueue_retries_total',
    help: 'Keys requeued for later',
  });
  const queueSeconds = histogram({
    ...common,
    buckets,
    name: 'workqueue_queue_duration_seconds',
    help: 'Seconds that keys waited in the queue',
  });
  const workSeconds = histogram({
    ...common,
    buckets,
    name: 'workqueue_work_duration_seconds',
    help: 'Seconds that work on keys took',
  });
  /** Gauges are computed when metrics are collected, over all queues of a name. */
  const computed =
    (pick: (members: WorkQueue[]) => number) =>
    (target: { set(labels: { name: string }, value: number): void }): void => {
      for (const [name, members] of queues) target.set({ name }, pick([...members]));
    };
  gauge({
    ...common,
    name: 'workqueue_depth',
    help: 'Keys that wait in the queue',
    collect: computed((members) => members.reduce((sum, { length }) => sum + length, 0)),
  });
  gauge({
    ...common,
    name: 'workqueue_unfinished_work_seconds',
    help: 'Seconds of work in progress, all keys together',
    collect: computed((members) => members.reduce((sum, queue) => sum + queue.unfinished().totalSeconds, 0)),
  });
  gauge({
    ...common,
    name: 'workqueue_longest_running_processor_seconds',
    help: 'Seconds that the longest piece of work has been in progress',
    collect: computed((members) => Math.max(0, ...members.map((queue) => queue.unfinished().maxSeconds))),
  });
  return {
    forQueue: (name) => {
      const label = { name };
      const members = queues.get(name) ?? new Set();
      queues.set(name, members);
      adds.inc(label, 0);
      retries.inc(label, 0);
      queueSeconds.zero(label);
      workSeconds.zero(label);
      return {
        added: () => adds.inc(label),
        retried: () => retries.inc(label),
        waited: (seconds) => queueSeconds.observe(label, seconds),
        worked: (seconds) => workSeconds.observe(label, seconds),
        observe: (queue) => void members.add(queue),
      };
    },
  };
}
