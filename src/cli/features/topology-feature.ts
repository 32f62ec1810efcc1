/** Topology of the whole cluster, or in node deployment of the own node, which also decides what it serves. */
import { joinSignals } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { CsiProvisionerOptions } from '../../csi/csi-provisioner-options.ts';
import { NodeDeployment } from '../../csi/node-deployment/node-deployment.ts';
import { nodeCaches, nodeInformers, type NodeInformers, staticNodes } from '../../csi/topology/topology-nodes.ts';
import type { TopologyHook } from '../../csi/topology/planned-topology.ts';
import { Topology, type TopologyOptions } from '../../csi/topology/topology.ts';
import { waitForSync } from '../../kube/cache/wait-for-sync.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

export interface TopologyFeature extends Feature {
  /** Undefined where the gate is off. */
  readonly topology: TopologyHook | undefined;
  /** Of the cluster, for topology and for capacity; undefined where neither needs them, and in node deployment. */
  readonly nodes: NodeInformers | undefined;
}

/** Topology of the whole cluster; in node deployment of the own node alone. */
export function topologyFeature(options: FeatureOptions): TopologyFeature {
  const { config, driver, transport, metrics, clock, logger } = options;
  const isWanted = config.featureGates.topology || config.capacity !== null;
  if (config.nodeDeployment !== null || !isWanted) return { topology: nodeTopology(options), nodes: undefined };
  const nodes = nodeInformers({ transport, driverName: driver.name, metrics: metrics.reflector, clock, logger });
  const topology = clusterTopology(options, nodes);
  const isNeeded = topology !== undefined && driver.capabilities.volumeAccessibilityConstraints;
  return { topology, nodes, caches: isNeeded ? nodeCaches(nodes) : undefined };
}

function clusterTopology(
  { config, driver, caches, ending, clock, logger }: FeatureOptions,
  nodes: NodeInformers,
): TopologyHook | undefined {
  if (!config.featureGates.topology) return undefined;
  const { strictTopology, immediateTopology } = config.provisioning;
  return centralTopology({
    nodes,
    startCaches: () => caches.need(nodeCaches(nodes)),
    signal: ending,
    driverName: driver.name,
    strict: strictTopology,
    immediate: immediateTopology,
    clock,
    logger,
  });
}

function nodeTopology({ config, driver, logger }: FeatureOptions): TopologyHook | undefined {
  const { featureGates, nodeDeployment: node, provisioning } = config;
  const { name: driverName, nodeInfo } = driver;
  if (!featureGates.topology || node === null || nodeInfo === undefined) return undefined;
  return new Topology({
    driverName,
    nodes: staticNodes({ driverName, nodeName: node.nodeName, nodeInfo: () => driver.nodeInfo ?? nodeInfo }),
    strict: provisioning.strictTopology,
    immediate: provisioning.immediateTopology,
    logger,
  });
}

interface CentralTopologyOptions extends Omit<TopologyOptions, 'nodes'> {
  nodes: NodeInformers;
  /** Runs the caches; called once, when a driver that reported topology only later first needs them. */
  startCaches: () => void;
  /** Ends every wait. */
  signal: AbortSignal;
  clock: Clock;
}

/** How long an attempt waits for caches that were only just started, in milliseconds. */
const fillingMs = 10_000;

/**
 * Topology from caches of the whole cluster. They run from the start for a driver with topology; a driver that is
 * replaced meanwhile may report it later.
 */
export function centralTopology(options: CentralTopologyOptions): TopologyHook {
  const { nodes, startCaches, signal, clock, logger } = options;
  const topology = new Topology(options);
  let started = false;
  return {
    async requirements(question) {
      if (!nodes.nodes.hasSynced || !nodes.csiNodes.hasSynced) {
        if (!started) startCaches();
        started = true;
        await filled({ nodes, signal, clock, logger });
      }
      return topology.requirements(question);
    },
    labelsOf: (nodeName) => topology.labelsOf(nodeName),
  };
}

async function filled(parts: {
  nodes: NodeInformers;
  signal: AbortSignal;
  clock: Clock;
  logger: Logger;
}): Promise<void> {
  const { nodes, signal, clock, logger } = parts;
  using waiting = joinSignals([signal], { clock, timeoutMs: fillingMs });
  try {
    await waitForSync(nodeCaches(nodes), { signal: waiting.signal, clock, logger });
  } catch (error) {
    const { message } = nodes.nodes.lastError ?? nodes.csiNodes.lastError ?? (error as Error);
    throw new Error(`nodes and CSINodes could not be read yet: ${message}`, { cause: error });
  }
}

/**
 * Ownership of claims and volumes by this node; undefined in a central deployment, which serves all nodes.
 *
 * @param settings - of the provisioner that uses it.
 */
export function nodeDeploymentFeature(
  { config, driver, random, clock }: FeatureOptions,
  settings: CsiProvisionerOptions,
): NodeDeployment | undefined {
  const { nodeInfo } = driver;
  if (config.nodeDeployment === null || nodeInfo === undefined) return undefined;
  return new NodeDeployment({
    ...config.nodeDeployment,
    nodeInfo: () => driver.nodeInfo ?? nodeInfo,
    getCapacity: (request, call) => driver.calls.getCapacity(request, call),
    driverConnected: () => driver.connected,
    settings,
    workers: config.provisioning.workerThreads,
    random,
    clock,
  });
}
