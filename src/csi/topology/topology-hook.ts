import type { TopologySelectorTerm } from '../../provision/objects.ts';
import type { DriverCapabilities } from '../driver-info.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';

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
