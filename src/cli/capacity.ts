/** Storage capacity in the process: what every replica finds out at the start, and what the leader then runs. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import { detectCapacityApi } from '../capacity/api-version.ts';
import { CapacityController } from '../capacity/capacity-controller.ts';
import { capacityInformer } from '../capacity/capacity-informer.ts';
import { type CapacityMetrics, capacityMetrics } from '../capacity/capacity-metrics.ts';
import { ClusterSegments } from '../capacity/cluster-segments.ts';
import type { ObjectFrame } from '../capacity/desired-object.ts';
import { managedBy } from '../capacity/managed-by.ts';
import { findOwner } from '../capacity/owner.ts';
import { type NodeTopology, NodeSegment } from '../capacity/node-segment.ts';
import type { SegmentSource } from '../capacity/segment.ts';
import { storageCapacities } from '../capacity/storage-capacity.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import type { NodeInformers } from '../csi/topology/topology-nodes.ts';
import type { Informer } from '../kube/informer.ts';
import { KubeClient } from '../kube/kube-client.ts';
import type { OwnerReference } from '../kube/kube-object.ts';
import type { ReflectorMetrics } from '../kube/reflector-metrics.ts';
import type { Transport } from '../kube/transport.ts';
import type { WorkQueueMetrics } from '../kube/work-queue.ts';
import type { WorkQueueMetricsProvider } from '../kube/work-queue-metrics.ts';
import type { StorageClass } from '../provision/objects.ts';
import type { CapacityConfig, Config } from './config.ts';
import { fatalExit } from '../run/exit.ts';
import { fieldManager } from './kubernetes.ts';

/** What capacity counts, on every replica. */
export interface CapacityFamilies {
  controller: CapacityMetrics;
  queue: WorkQueueMetrics;
  /** Undefined in node deployment, which watches no nodes. */
  topologyQueue: WorkQueueMetrics | undefined;
}

/** Registers what capacity counts. @throws {Error} when the registry has it already. */
export function capacityFamilies(
  registry: MetricRegistry,
  { forQueue }: WorkQueueMetricsProvider,
  config: Config,
): CapacityFamilies {
  return {
    controller: capacityMetrics(registry),
    queue: forQueue('csistoragecapacity'),
    topologyQueue: config.nodeDeployment === null ? forQueue('csitopology') : undefined,
  };
}

/** What was found out at the start. */
export interface CapacitySetup {
  config: CapacityConfig;
  frame: ObjectFrame;
  /** For requests about capacity objects alone: it may have a rate limit of its own. */
  transport: Transport;
}

/**
 * Finds the owner of the objects and the version of their API.
 *
 * @param options.transport - the one for capacity.
 * @param options.nodeDeployment - null: one provisioner for the cluster. Its labels are the segments of NodeGetInfo, empty
 * where the driver has none.
 * @throws {ExitError} with code 255 when one of them cannot be found; the signal's reason when it aborts.
 */
export async function setUpCapacity(options: {
  config: CapacityConfig;
  nodeDeployment: { nodeName: string; nodeLabels: Readonly<Record<string, string>> } | null;
  driverName: string;
  transport: Transport;
  signal: AbortSignal;
  logger: Logger;
}): Promise<CapacitySetup> {
  const { config, nodeDeployment, driverName, transport, signal, logger } = options;
  const { namespace } = config;
  const client = new KubeClient({ transport, fieldManager });
  const owner = await ownerOf(config, client, signal, logger);
  if (nodeDeployment !== null) {
    const segment = nodeDeployment.nodeLabels;
    logger.info({ segment }, 'producing CSIStorageCapacity objects with fixed topology segment');
  }
  const api = await detectCapacityApi({ client, namespace, signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw fatalExit((error as Error).message, error);
  });
  if (api.namespaceMissing) {
    logger.error(
      { namespace },
      'The namespace of NAMESPACE does not exist: no capacity can be published until it does',
    );
  }
  logger.info({}, `using the CSIStorageCapacity ${api.version} API`);
  const resource = storageCapacities(api.version);
  const frame = { resource, namespace, driverName, owner, managedBy: managedBy(nodeDeployment?.nodeName) };
  return { config, frame, transport };
}

async function ownerOf(
  { namespace, podName, ownerRefLevel: level }: CapacityConfig,
  client: KubeClient,
  signal: AbortSignal,
  logger: Logger,
): Promise<OwnerReference | undefined> {
  if (level < 0) return undefined;
  const owner = await findOwner({ client, namespace, podName, level, signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw fatalExit(`look up owner(s) of pod: ${(error as Error).message}`, error);
  });
  const { apiVersion, kind, name } = owner;
  logger.info({}, `using ${apiVersion}/${kind} ${name} as owner of CSIStorageCapacity objects`);
  return owner;
}

export interface CapacityWorkOptions {
  setup: CapacitySetup;
  config: Config;
  driver: Pick<CsiCalls, 'getCapacity'>;
  /** Whether the driver can be reached now. */
  driverConnected: () => boolean;
  classes: Informer<StorageClass>;
  /** Of the cluster; undefined in node deployment. */
  nodes: NodeInformers | undefined;
  /** Labels of the own node, whose segment counts where there are no nodes of the cluster. */
  nodeLabels: NodeTopology['labels'];
  /** Calls the listener each time the driver came back: then nothing that it said must hold any longer. */
  onDriverBack: NodeTopology['onChange'];
  families: CapacityFamilies;
  reflectorMetrics: (resource: string) => ReflectorMetrics;
  clock: Clock;
  logger: Logger;
}

/** What the leader runs. */
export interface CapacityWork {
  controller: CapacityController;
  /** Caches and segments: they end when the signal aborts. None of them holds up provisioning. */
  follow(signal: AbortSignal): Promise<void>;
}

/** Puts the controller and its own caches together; nothing is read before they are run. */
export function capacityWork(options: CapacityWorkOptions): CapacityWork {
  const { setup, config, driver, classes, families, clock, logger } = options;
  const { frame, transport } = setup;
  const capacities = capacityInformer({
    transport,
    frame,
    metrics: options.reflectorMetrics(frame.resource.plural),
    clock,
    logger,
  });
  const segments = segmentSource(options);
  const controller = new CapacityController({
    frame,
    client: new KubeClient({ transport, fieldManager }),
    driver,
    driverConnected: options.driverConnected,
    classes,
    capacities,
    segments,
    forImmediateBinding: setup.config.forImmediateBinding,
    workers: setup.config.threads,
    pollIntervalMs: setup.config.pollIntervalMs,
    retryStartMs: config.provisioning.retryIntervalStartMs,
    retryMaxMs: config.provisioning.retryIntervalMaxMs,
    queueMetrics: families.queue,
    metrics: families.controller,
    clock,
    logger,
  });
  return {
    controller,
    follow: async (signal) => {
      using _asking = options.onDriverBack(() => controller.refreshAll());
      await Promise.all([capacities.run(signal), segments.run(signal)]);
    },
  };
}

function segmentSource(options: CapacityWorkOptions): SegmentSource {
  const { setup, nodes, nodeLabels, onDriverBack, families, clock, logger } = options;
  if (nodes === undefined) return new NodeSegment({ labels: nodeLabels, onChange: onDriverBack });
  const { driverName } = setup.frame;
  return new ClusterSegments({ nodes, driverName, queueMetrics: families.topologyQueue, clock, logger });
}
