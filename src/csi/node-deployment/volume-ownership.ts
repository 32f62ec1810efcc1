import type { Logger } from '../../base/logger.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { identityKey } from '../annotation-keys.ts';
import type { NodeInfo } from '../driver-info.ts';
import { errorMessage } from '../error-message.ts';
import { nodeOfIdentity } from '../identity.ts';
import { selectsNode } from './node-selector.ts';

export interface VolumeOwnershipOptions {
  driverName: string;
  nodeName: string;
  nodeInfo: NodeInfo;
  /** Volumes carry the place they are in. */
  topologySupported: boolean;
  logger: Logger;
}

/**
 * Whether the instance on this node deletes the volume. It does so when the volume's node affinity fits the node, and
 * when the volume says that it was made here: the place that the driver names may have changed since. A volume, or a
 * node, without a place is everybody's, but only with a driver that places its volumes: one that does not would be asked
 * on every node, and would say on a wrong one that the volume is gone.
 *
 * @throws {Error} `checking volume affinity failed: ...` when the affinity cannot be read.
 */
export function ownsVolume(volume: PersistentVolume, options: VolumeOwnershipOptions): boolean {
  const { driverName, nodeName, nodeInfo, topologySupported, logger } = options;
  const madeOn = nodeOfIdentity(volume.spec.csi?.volumeAttributes?.[identityKey], driverName);
  if (madeOn === nodeName) return true;
  const required = volume.spec.nodeAffinity?.required;
  if (required !== undefined && nodeInfo.segments !== undefined)
    return fits(required.nodeSelectorTerms, nodeInfo.segments);
  if (topologySupported) return true;
  if (madeOn === undefined || madeOn === '') {
    logger.warn(
      { volume: volume.metadata.name },
      'The volume does not say which node it was made on, no instance will delete it',
    );
  }
  return false;
}

function fits(...selection: Parameters<typeof selectsNode>): boolean {
  try {
    return selectsNode(...selection);
  } catch (error) {
    throw new Error(`checking volume affinity failed: ${errorMessage(error)}`, { cause: error });
  }
}
