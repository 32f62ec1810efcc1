import type { NodeInfo } from '../csi/driver-info.ts';
import { identityKey, nodeOfIdentity } from '../csi/identity.ts';
import { selectsNode } from '../csi/topology/topology-term.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import type { VolumeHome } from './cluster-volumes.ts';

/**
 * In node deployment: whether the driver of this node has the storage of a volume. Where node affinity and the identity of who
 * created it do not agree, or say nothing, it is unknown, and so never called lost.
 *
 * @param volume - in CSI form.
 */
export function nodeVolumeHome(
  volume: PersistentVolume,
  node: { driverName: string; nodeName: string; nodeInfo: NodeInfo },
): VolumeHome {
  const madeOn = nodeOfIdentity(volume.spec.csi?.volumeAttributes?.[identityKey], node.driverName) ?? '';
  const fitsNode = fits(volume, node.nodeInfo);
  if (madeOn === node.nodeName) return 'here';
  if (fitsNode === false) return 'elsewhere';
  if (madeOn !== '') return fitsNode === true ? 'unknown' : 'elsewhere';
  return fitsNode === true ? 'here' : 'unknown';
}

/**
 * Of the only driver for all nodes: it has all volumes, but where a sidecar on a node created one, this driver may be that of
 * another node.
 *
 * @param volume - in CSI form.
 */
export function centralVolumeHome({ spec }: PersistentVolume, driverName: string): VolumeHome {
  return (nodeOfIdentity(spec.csi?.volumeAttributes?.[identityKey], driverName) ?? '') === '' ? 'here' : 'unknown';
}

/** Undefined: the node affinity, or the driver, does not say. */
function fits({ spec }: PersistentVolume, { segments }: NodeInfo): boolean | undefined {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined || segments === undefined) return undefined;
  try {
    return selectsNode(terms, segments);
  } catch {
    return undefined;
  }
}
