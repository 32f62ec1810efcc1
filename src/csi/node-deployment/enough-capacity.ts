import { objectKey } from '../../kube/kube-object.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../provision/objects.ts';
import type { CsiCalls } from '../csi-calls.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { draftVolume, requestParameters, supportsTopology } from '../draft-volume.ts';
import type { GetCapacityRequest } from '../generated/csi/v1/GetCapacityRequest.ts';
import type { Topology } from '../generated/csi/v1/Topology.ts';
import { storageRequestBytes } from '../requested-capacity.ts';
import { requirementsOnNode } from './requirements-on-node.ts';

export interface CapacityQuestion {
  settings: CsiProvisionerOptions;
  getCapacity: CsiCalls['getCapacity'];
  nodeName: string;
  claim: PersistentVolumeClaim;
  storageClass: StorageClass;
  signal: AbortSignal;
}

/**
 * Whether the driver has room for the claim on this node (CSI spec, `GetCapacity`). Changes nothing: no source is
 * protected, no event is written, nothing is remembered. A claim without a size fits everywhere.
 *
 * @throws {Error} when the claim cannot be provisioned as it stands, or when the driver cannot say.
 */
export async function hasEnoughCapacity(question: CapacityQuestion): Promise<boolean> {
  const { getCapacity, nodeName, claim, storageClass, signal } = question;
  const wanted = storageRequestBytes(claim);
  if (wanted === 0n) return true;
  const settings = { ...question.settings, recorder: { event: () => undefined } };
  const options = { claim, storageClass, selectedNodeName: nodeName, volumeName: '' };
  const draft = await draftVolume(settings, options);
  const request: GetCapacityRequest = {
    volume_capabilities: draft.capabilities,
    parameters: requestParameters(settings, options, draft),
  };
  let places: readonly (Topology | undefined)[] = [undefined];
  if (supportsTopology(settings)) {
    const { allowedTopologies } = draft.storageClass;
    const required = await requirementsOnNode(settings.topology, { nodeName, claim, allowedTopologies });
    if (required?.requisite) places = required.requisite;
  }
  for (const place of places) {
    const { available_capacity: available = '0' } = await getCapacity(
      place === undefined ? request : { ...request, accessible_topology: place },
      { signal, about: { claim: objectKey(claim) } },
    );
    if (wanted <= BigInt(available)) return true;
  }
  return false;
}
