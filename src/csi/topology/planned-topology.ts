/** Accessibility requirements as a plan has them: each topology once, in a list that many plans share. */
import type { TopologySelectorTerm } from '../../provision/objects.ts';
import type { DriverCapabilities } from '../driver-info.ts';
import type { Topology } from '../generated/csi/v1/Topology.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import { rotated } from './topology-term.ts';

/** The requisite topologies; preferred are the same, beginning with the one at the index `first`. */
export interface PlannedTopology {
  requisite: Topology[];
  first: number;
}

/** @throws {Error} when the preferred topologies are not the requisite ones, rotated. */
export function plannedTopology({ requisite, preferred }: TopologyRequirement): PlannedTopology {
  const all = requisite ?? [];
  const wanted = preferred ?? [];
  for (let first = 0; first < Math.max(all.length, 1); first += 1) {
    if (sameTopologies(wanted, all, first)) return { requisite: all, first };
  }
  throw new Error('the preferred topologies are not the requisite ones in their order');
}

/** The requirements that were planned, as CreateVolume is sent them. */
export function topologyRequirement({ requisite, first }: PlannedTopology): TopologyRequirement {
  return { requisite, preferred: rotated(requisite, first) };
}

/** Shorter lists are not worth sharing, and must not displace a long one. */
const sharedLength = 8;

/** Keeps the list of the latest plan, so that plans share one while the nodes do not change: it may have thousands of entries. */
export class SharedRequisite {
  #latest: Topology[] = [];

  share(planned: PlannedTopology): PlannedTopology {
    if (planned.requisite.length < sharedLength) return planned;
    if (!sameTopologies(planned.requisite, this.#latest)) this.#latest = planned.requisite;
    return { ...planned, requisite: this.#latest };
  }
}

/** Whether the lists are the same when the second is read from an index on, and then from its beginning. */
function sameTopologies(a: readonly Topology[], b: readonly Topology[], first = 0): boolean {
  return (
    a.length === b.length && a.every((topology, index) => sameSegments(topology, b[(first + index) % b.length] ?? {}))
  );
}

function sameSegments({ segments: a = {} }: Topology, { segments: b = {} }: Topology): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}

/** What the topology computation is given for one attempt. */
export interface TopologyQuestion {
  claimName: string;
  /** Of the class after in-tree translation. */
  allowedTopologies: readonly TopologySelectorTerm[] | undefined;
  /** Empty: no node was chosen. */
  selectedNodeName: string;
}

/** The topology computation; absent where the gate is off. Used only while the driver reports the capability. */
export interface TopologyHook {
  /**
   * The accessibility requirements for CreateVolume, or undefined when none are to be sent. The preferred topologies are the
   * requisite ones, rotated.
   *
   * @throws {SelectedNodeGoneError} when another node must be chosen; anything else becomes an event, with a prefix.
   */
  requirements(question: TopologyQuestion): TopologyRequirement | undefined | Promise<TopologyRequirement | undefined>;
  /** The labels of a node, as last seen; undefined for an unknown node. Absent: no node is known. */
  labelsOf?(nodeName: string): Readonly<Record<string, string>> | undefined;
}

/** Whether requests to the driver carry topology. */
export function supportsTopology(settings: {
  topology?: TopologyHook | undefined;
  capabilities: () => DriverCapabilities;
}): boolean {
  return settings.topology !== undefined && settings.capabilities().volumeAccessibilityConstraints;
}

/** The selected node's Node or CSINode does not exist. */
export class SelectedNodeGoneError extends Error {
  override readonly name = 'SelectedNodeGoneError';
}
