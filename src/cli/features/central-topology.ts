import { joinSignals } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { Topology, type TopologyOptions } from '../../csi/topology/topology.ts';
import type { TopologyHook } from '../../csi/topology/topology-hook.ts';
import { nodeCaches, type NodeInformers } from '../../csi/topology/topology-nodes.ts';
import { waitForSync } from '../../kube/cache/wait-for-sync.ts';

export interface CentralTopologyOptions extends Omit<TopologyOptions, 'nodes'> {
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
