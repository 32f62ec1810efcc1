import type { PersistentVolumeClaim, TopologySelectorTerm } from '../../provision/objects.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import type { TopologyHook } from '../topology/topology-hook.ts';

/**
 * What CreateVolume would be told if the claim were for this node. Unlike an attempt to provision it leaves nothing
 * behind: what is remembered for a claim's retries belongs to whoever provisions it.
 *
 * @throws as `TopologyHook.requirements`.
 */
export async function requirementsOnNode(
  topology: TopologyHook | undefined,
  question: {
    nodeName: string;
    claim: PersistentVolumeClaim;
    allowedTopologies: readonly TopologySelectorTerm[] | undefined;
  },
): Promise<TopologyRequirement | undefined> {
  const { nodeName, claim, allowedTopologies } = question;
  const { uid = '', name } = claim.metadata;
  const ownKey = `only-looking-${uid}`;
  try {
    return await topology?.requirements({
      claim: { uid: ownKey, name },
      allowedTopologies,
      selectedNodeName: nodeName,
    });
  } finally {
    topology?.forget(ownKey);
  }
}
