import type { Csi } from './csi-proto.ts';
import type { CreateVolumeRequest } from './generated/csi/v1/CreateVolumeRequest.ts';
import type { CreateVolumeResponse__Output } from './generated/csi/v1/CreateVolumeResponse.ts';
import type { ControllerGetCapabilitiesResponse__Output } from './generated/csi/v1/ControllerGetCapabilitiesResponse.ts';
import type { ControllerGetVolumeRequest } from './generated/csi/v1/ControllerGetVolumeRequest.ts';
import type { ControllerGetVolumeResponse__Output } from './generated/csi/v1/ControllerGetVolumeResponse.ts';
import type { DeleteVolumeRequest } from './generated/csi/v1/DeleteVolumeRequest.ts';
import type { GetCapacityRequest } from './generated/csi/v1/GetCapacityRequest.ts';
import type { GetCapacityResponse__Output } from './generated/csi/v1/GetCapacityResponse.ts';
import type { GetPluginCapabilitiesResponse__Output } from './generated/csi/v1/GetPluginCapabilitiesResponse.ts';
import type { GetPluginInfoResponse__Output } from './generated/csi/v1/GetPluginInfoResponse.ts';
import type { ListVolumesRequest } from './generated/csi/v1/ListVolumesRequest.ts';
import type { ListVolumesResponse__Output } from './generated/csi/v1/ListVolumesResponse.ts';
import type { NodeGetInfoResponse__Output } from './generated/csi/v1/NodeGetInfoResponse.ts';
import type { ProbeResponse__Output } from './generated/csi/v1/ProbeResponse.ts';
import { unaryCall, type CallOptions, type CallSettings, type WithWrappedSecrets } from './unary-call.ts';

/** The calls that change volumes. Each throws `CsiCallError`. */
export interface ControllerCalls {
  createVolume(
    request: WithWrappedSecrets<CreateVolumeRequest>,
    options?: CallOptions,
  ): Promise<CreateVolumeResponse__Output>;
  /** OK also for a volume that is already gone (CSI spec, `DeleteVolume`). */
  deleteVolume(request: WithWrappedSecrets<DeleteVolumeRequest>, options?: CallOptions): Promise<void>;
}

/** All calls a provisioner makes. Each throws `CsiCallError` and has its own deadline. */
export interface CsiCalls extends ControllerCalls {
  probe(options?: CallOptions): Promise<ProbeResponse__Output>;
  getPluginInfo(options?: CallOptions): Promise<GetPluginInfoResponse__Output>;
  getPluginCapabilities(options?: CallOptions): Promise<GetPluginCapabilitiesResponse__Output>;
  controllerGetCapabilities(options?: CallOptions): Promise<ControllerGetCapabilitiesResponse__Output>;
  nodeGetInfo(options?: CallOptions): Promise<NodeGetInfoResponse__Output>;
  getCapacity(request: GetCapacityRequest, options?: CallOptions): Promise<GetCapacityResponse__Output>;
  listVolumes(request: ListVolumesRequest, options?: CallOptions): Promise<ListVolumesResponse__Output>;
  /** Alpha. Code `NotFound` for a volume that does not exist (CSI spec, `ControllerGetVolume`). */
  controllerGetVolume(
    request: ControllerGetVolumeRequest,
    options?: CallOptions,
  ): Promise<ControllerGetVolumeResponse__Output>;
}

/** Binds the calls to a connection. */
export function csiCalls(csi: Csi, settings: Omit<CallSettings, 'secretFields'>): CsiCalls {
  const { Identity: identity, Controller: controller, Node: node } = csi.v1;
  const call: CallSettings = { ...settings, secretFields: csi.secretFields };
  return {
    probe: (options) => unaryCall(call, identity.Probe, {}, options),
    getPluginInfo: (options) => unaryCall(call, identity.GetPluginInfo, {}, options),
    getPluginCapabilities: (options) => unaryCall(call, identity.GetPluginCapabilities, {}, options),
    controllerGetCapabilities: (options) => unaryCall(call, controller.ControllerGetCapabilities, {}, options),
    nodeGetInfo: (options) => unaryCall(call, node.NodeGetInfo, {}, options),
    getCapacity: (request, options) => unaryCall(call, controller.GetCapacity, request, options),
    listVolumes: (request, options) => unaryCall(call, controller.ListVolumes, request, options),
    controllerGetVolume: (request, options) => unaryCall(call, controller.ControllerGetVolume, request, options),
    createVolume: (request, options) =>
      unaryCall(call, controller.CreateVolume, request, { ...options, creates: true }),
    deleteVolume: async (request, options) => {
      await unaryCall(call, controller.DeleteVolume, request, options);
    },
  };
}
