import { objectKey } from '../../kube/kube-object.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../provision/objects.ts';
import { requestParameters } from '../create/volume-plan.ts';
import type { CsiCalls } from '../csi-calls.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import type { GetCapacityRequest } from '../generated/csi/v1/GetCapacityRequest.ts';
import type { Topology } from '../generated/csi/v1/Topology.ts';
import { storageRequestBytes } from '../create/storage-request.ts';
import { supportsTopology } from '../topology/topology-hook.ts';
import { validateClaim } from '../create/validate-claim.ts';
import { volumeName } from '../create/volume-name.ts';

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
 * protected, no event is recorded, nothing is remembered. A claim without a size fits everywhere.
 *
 * @throws {Error} when the claim cannot be provisioned as it is, or when GetCapacity fails.
 */
export async function hasEnoughCapacity(question: CapacityQuestion): Promise<boolean> {
  const { settings, getCapacity, nodeName, claim, storageClass: given, signal } = question;
  const { uid = '', name } = claim.metadata;
  const wanted = storageRequestBytes(claim);
  if (wanted === 0n) return true;
  const { capabilities, storageClass } = validateClaim(settings, { claim, storageClass: given });
  const named = volumeName(settings.volumeNamePrefix, uid, settings.volumeNameUuidLength);
  const request: GetCapacityRequest = {
    volume_capabilities: capabilities,
    parameters: requestParameters(settings, claim, { storageClass, name: named }),
  };
  let topologies: readonly (Topology | undefined)[] = [undefined];
  if (supportsTopology(settings)) {
    const { allowedTopologies } = storageClass;
    const required = await settings.topology?.requirements({
      claimName: name,
      allowedTopologies,
      selectedNodeName: nodeName,
    });
    if (required?.requisite) topologies = required.requisite;
  }
  for (const topology of topologies) {
    const { available_capacity: available = '0' } = await getCapacity(
      topology === undefined ? request : { ...request, accessible_topology: topology },
      { signal, about: { claim: objectKey(claim) } },
    );
    if (wanted <= BigInt(available)) return true;
  }
  return false;
}
