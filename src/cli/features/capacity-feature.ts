import { TaskGroup } from '../../base/task-group.ts';
import { CapacityController } from '../../capacity/capacity-controller.ts';
import { capacityInformer } from '../../capacity/capacity-informer.ts';
import { ClusterSegments } from '../../capacity/cluster-segments.ts';
import { NodeSegment } from '../../capacity/node-segment.ts';
import type { SegmentSource } from '../../capacity/segment.ts';
import { nodeCaches, type NodeInformers } from '../../csi/topology/topology-nodes.ts';
import { KubeClient } from '../../kube/client/kube-client.ts';
import type { Feature } from '../../run/feature.ts';
import type { CapacityFamilies, CapacitySetup } from '../capacity.ts';
import { fieldManager } from '../kubernetes.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

export interface CapacityFeature extends Feature {
  readonly controller: CapacityController;
}

/**
 * Publishes capacity. Provisioning waits for none of its caches: without permission to read them nothing is published,
 * and claims are provisioned all the same.
 *
 * @param nodes - of the cluster; undefined in node deployment.
 * @returns undefined where capacity is not published.
 */
export function capacityFeature(
  options: FeatureOptions,
  nodes: NodeInformers | undefined,
): CapacityFeature | undefined {
  const { config, driver, capacity: setup, metrics, informers, caches, clock, logger } = options;
  if (setup === undefined || metrics.capacity === undefined) return undefined;
  const { frame, owner, transport } = setup;
  const capacities = capacityInformer({
    transport,
    frame,
    metrics: metrics.reflector(frame.resource.plural),
    clock,
    logger,
  });
  const segments = segmentSource(options, { nodes, setup, families: metrics.capacity });
  const controller = new CapacityController({
    frame,
    owner,
    client: new KubeClient({ transport, fieldManager }),
    driver: driver.calls,
    driverConnected: () => driver.connected,
    classes: informers.classes,
    capacities,
    segments,
    forImmediateBinding: setup.config.forImmediateBinding,
    workers: setup.config.threads,
    pollIntervalMs: setup.config.pollIntervalMs,
    retryStartMs: config.provisioning.retryIntervalStartMs,
    retryMaxMs: config.provisioning.retryIntervalMaxMs,
    queueMetrics: metrics.capacity.queue,
    metrics: metrics.capacity.controller,
    clock,
    logger,
  });
  return {
    controller,
    async follow(signal) {
      if (nodes !== undefined) caches.start(nodeCaches(nodes));
      using _refreshing = driver.onReconnected(() => controller.refreshAll()); // earlier amounts may be outdated
      const followed = new TaskGroup(signal);
      followed.start((ending) => capacities.run(ending));
      followed.start((ending) => segments.run(ending));
      await followed.ended();
    },
    run: (until) => controller.run(until),
  };
}

/** The segments of the cluster, or in node deployment that of the own node. */
function segmentSource(
  { driver, clock, logger }: FeatureOptions,
  parts: { nodes: NodeInformers | undefined; setup: CapacitySetup; families: CapacityFamilies },
): SegmentSource {
  const { nodes, setup, families } = parts;
  if (nodes === undefined) {
    return new NodeSegment({
      labels: () => driver.nodeInfo?.segments ?? {},
      onChange: (listener) => driver.onReconnected(listener),
    });
  }
  const { driverName } = setup.frame;
  return new ClusterSegments({ nodes, driverName, queueMetrics: families.topologyQueue, clock, logger });
}
