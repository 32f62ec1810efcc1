import type { Logger } from '../../base/logger.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { identityKey, nodeOfIdentity } from '../identity.ts';
import type { NodeInfo } from '../driver-info.ts';
import { errorMessage } from '../call-error.ts';
import { selectsNode } from '../topology/topology-term.ts';

export interface VolumeOwnershipOptions {
  driverName: string;
  nodeName: string;
  nodeInfo: NodeInfo;
  /** The driver uses topology: volumes have a node affinity. */
  topologySupported: boolean;
  logger: Logger;
}

/**
 * Whether the instance on this node deletes the volume. It does so when the volume's node affinity fits the node, and
 * when the volume's identity names this node: the segments that the driver reports may have changed since. A volume, or
 * a node, without segments belongs to every node, but only with a driver that uses topology: without topology it
 * would be called on every node, and a wrong one would report that the volume is gone.
 *
 * @throws {Error} `checking volume affinity failed: ...` when the affinity cannot be read.
 */
export function ownsVolume(volume: PersistentVolume, options: VolumeOwnershipOptions): boolean {
  const { driverName, nodeName, nodeInfo, topologySupported, logger } = options;
  const madeOn = makerOf(volume, driverName);
  if (madeOn === nodeName) return true;
  const required = volume.spec.nodeAffinity?.required;
  if (required !== undefined && nodeInfo.segments !== undefined)
    return fits(required.nodeSelectorTerms, nodeInfo.segments);
  if (topologySupported) return true;
  if (madeOn === undefined || madeOn === '') {
    logger.warn(
      { volume: volume.metadata.name },
      'The volume does not name the node that it was created on, no instance will delete it',
    );
  }
  return false;
}

/** Whether the volume's identity names another instance: that of another node, or a central one. */
export function isMadeElsewhere(
  volume: PersistentVolume,
  { driverName, nodeName }: Pick<VolumeOwnershipOptions, 'driverName' | 'nodeName'>,
): boolean {
  const madeOn = makerOf(volume, driverName);
  return madeOn !== undefined && madeOn !== nodeName;
}

function makerOf({ spec }: PersistentVolume, driverName: string): string | undefined {
  return nodeOfIdentity(spec.csi?.volumeAttributes?.[identityKey], driverName);
}

function fits(...selection: Parameters<typeof selectsNode>): boolean {
  try {
    return selectsNode(...selection);
  } catch (error) {
    throw new Error(`checking volume affinity failed: ${errorMessage(error)}`, { cause: error });
  }
}
