import { staticNodes } from '../../csi/node-deployment/static-nodes.ts';
import { Topology } from '../../csi/topology/topology.ts';
import type { TopologyHook } from '../../csi/topology/topology-hook.ts';
import { nodeCaches, nodeInformers, type NodeInformers } from '../../csi/topology/topology-nodes.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { centralTopology } from './central-topology.ts';

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
