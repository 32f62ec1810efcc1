import { counter, histogram, type MetricRegistry } from '../base/metrics.ts';
import type { ControllerMetrics } from './controller-metrics.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the six `controller_*` families. @throws {Error} when the registry has them already. */
export function prometheusMetrics(registry: MetricRegistry): ControllerMetrics {
  const claimLabels = ['class', 'source'] as const;
  const volumeLabels = ['class'] as const;
  const provisioned = counter({
    registry,
    labels: claimLabels,
    name: 'controller_persistentvolumeclaim_provision_total',
    help: 'Persistent volumes provisioned, by class and source of the claim',
  });
  const provisionFailed = counter({
    registry,
    labels: claimLabels,
    name: 'controller_persistentvolumeclaim_provision_failed_total',
    help: 'Failed attempts to provision a persistent volume, by class and source of the claim',
  });
  const provisionSeconds = histogram({
    registry,
    labels: claimLabels,
    buckets,
    name: 'controller_persistentvolumeclaim_provision_duration_seconds',
    help: 'Seconds taken to provision persistent volumes, by class and source of the claim',
  });
  const deleted = counter({
    registry,
    labels: volumeLabels,
    name: 'controller_persistentvolume_delete_total',
    help: 'Persistent volumes deleted, by class',
  });
  const deleteFailed = counter({
    registry,
    labels: volumeLabels,
    name: 'controller_persistentvolume_delete_failed_total',
    help: 'Failed attempts to delete a persistent volume, by class',
  });
  const deleteSeconds = histogram({
    registry,
    labels: volumeLabels,
    buckets,
    name: 'controller_persistentvolume_delete_duration_seconds',
    help: 'Seconds taken to delete persistent volumes, by class',
  });
  return {
    provisioned: (labels, seconds) => {
      provisioned.inc(labels);
      provisionSeconds.observe(labels, seconds);
    },
    provisionFailed: (labels) => provisionFailed.inc(labels),
    deleted: (labels, seconds) => {
      deleted.inc(labels);
      deleteSeconds.observe(labels, seconds);
    },
    deleteFailed: (labels) => deleteFailed.inc(labels),
  };
}
