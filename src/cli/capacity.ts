/** Storage capacity: what every replica looks up at the start, for the leader's controller. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import { type CapacityMetrics, capacityMetrics } from '../capacity/capacity-metrics.ts';
import { CurrentOwner } from '../capacity/current-owner.ts';
import type { ObjectFrame } from '../capacity/desired-object.ts';
import { managedBy } from '../capacity/storage-capacity.ts';
import { findOwner, type OwnerQuestion } from '../capacity/owner.ts';
import { storageCapacities } from '../capacity/storage-capacity.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import type { OwnerReference } from '../kube/kube-object.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import type { WorkQueueMetricsProvider } from '../kube/queue/work-queue-metrics.ts';
import type { CapacityConfig, Config } from './config.ts';
import { fatalExit } from '../run/exit.ts';
import { fieldManager } from './kubernetes.ts';

/** Metrics of capacity, registered on every replica. */
export interface CapacityFamilies {
  controller: CapacityMetrics;
  queue: WorkQueueMetrics;
  /** Undefined in node deployment, which watches no nodes. */
  topologyQueue: WorkQueueMetrics | undefined;
}

/** Registers the metrics of capacity. @throws {Error} when the registry has it already. */
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

export interface CapacitySetup {
  config: CapacityConfig;
  frame: ObjectFrame;
  /** Undefined: the objects have none. */
  owner: CurrentOwner | undefined;
  /** For requests about capacity objects alone: it may have a rate limit of its own. */
  transport: Transport;
}

/**
 * Finds the owner of the objects.
 *
 * @param options.transport - the one for capacity.
 * @param options.nodeDeployment - null: one provisioner for the cluster. Its labels are the segments of NodeGetInfo, empty
 * where the driver has none.
 * @throws {ExitError} with code 255 when it cannot be found; the signal's reason when it aborts.
 */
export async function setUpCapacity(options: {
  config: CapacityConfig;
  nodeDeployment: { nodeName: string; nodeLabels: Readonly<Record<string, string>> } | null;
  driverName: string;
  transport: Transport;
  signal: AbortSignal;
  clock: Clock;
  logger: Logger;
}): Promise<CapacitySetup> {
  const { config, nodeDeployment, driverName, transport, signal, clock, logger } = options;
  const { namespace } = config;
  const client = new KubeClient({ transport, fieldManager });
  const found = await ownerOf(config, client, signal, logger);
  if (nodeDeployment !== null) {
    const segment = nodeDeployment.nodeLabels;
    logger.info({ segment }, 'producing CSIStorageCapacity objects with fixed topology segment');
  }
  const frame = {
    resource: storageCapacities,
    namespace,
    driverName,
    owner: found,
    managedBy: managedBy(nodeDeployment?.nodeName),
  };
  const find = (until: AbortSignal): Promise<OwnerReference> => findOwner(ownerQuestion(config, client, until));
  return { config, frame, owner: found && new CurrentOwner({ found, find, clock, logger }), transport };
}

function ownerQuestion(
  { namespace, podName, ownerRefLevel: level }: CapacityConfig,
  client: KubeClient,
  signal: AbortSignal,
): OwnerQuestion {
  return { client, namespace, podName, level, signal };
}

async function ownerOf(
  config: CapacityConfig,
  client: KubeClient,
  signal: AbortSignal,
  logger: Logger,
): Promise<OwnerReference | undefined> {
  if (config.ownerRefLevel < 0) return undefined;
  const owner = await findOwner(ownerQuestion(config, client, signal)).catch((error: unknown) => {
    signal.throwIfAborted();
    throw fatalExit(`look up owner(s) of pod: ${(error as Error).message}`, error);
  });
  const { apiVersion, kind, name } = owner;
  logger.info({}, `using ${apiVersion}/${kind} ${name} as owner of CSIStorageCapacity objects`);
  return owner;
}
