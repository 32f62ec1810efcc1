import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { csiServices } from '../csi-services.ts';
import { controllerPublishVolume, controllerUnpublishVolume } from './attachment.ts';
import { createVolume } from './create-volume.ts';
import { getCapacity } from './free-room.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { controllerGetCapabilities, getPluginCapabilities, getPluginInfo, probe } from './identity.ts';
import { controllerModifyVolume } from './mutable-parameters.ts';
import { nodeExpandVolume, nodeGetCapabilities, nodeGetInfo, nodeGetVolumeStats } from './node-info.ts';
import { nodePublishVolume, nodeStageVolume, nodeUnpublishVolume, nodeUnstageVolume } from './node-mounts.ts';
import { serveCall } from './serve-call.ts';
import type { ServeOptions } from './serve-call.ts';
import { createSnapshot, deleteSnapshot, getSnapshot, listSnapshots } from './snapshots.ts';
import {
  controllerExpandVolume,
  controllerGetVolume,
  deleteVolume,
  listVolumes,
  validateVolumeCapabilities,
} from './volumes.ts';

const calls = {
  Identity: { GetPluginInfo: getPluginInfo, GetPluginCapabilities: getPluginCapabilities, Probe: probe },
  Controller: {
    CreateVolume: createVolume,
    DeleteVolume: deleteVolume,
    ControllerPublishVolume: controllerPublishVolume,
    ControllerUnpublishVolume: controllerUnpublishVolume,
    ValidateVolumeCapabilities: validateVolumeCapabilities,
    ListVolumes: listVolumes,
    GetCapacity: getCapacity,
    ControllerGetCapabilities: controllerGetCapabilities,
    CreateSnapshot: createSnapshot,
    DeleteSnapshot: deleteSnapshot,
    ListSnapshots: listSnapshots,
    GetSnapshot: getSnapshot,
    ControllerExpandVolume: controllerExpandVolume,
    ControllerGetVolume: controllerGetVolume,
    ControllerModifyVolume: controllerModifyVolume,
  },
  Node: {
    NodeStageVolume: nodeStageVolume,
    NodeUnstageVolume: nodeUnstageVolume,
    NodePublishVolume: nodePublishVolume,
    NodeUnpublishVolume: nodeUnpublishVolume,
    NodeGetVolumeStats: nodeGetVolumeStats,
    NodeExpandVolume: nodeExpandVolume,
    NodeGetCapabilities: nodeGetCapabilities,
    NodeGetInfo: nodeGetInfo,
  },
} as const;

/** One gRPC service and its handlers. */
export interface ServedService {
  definition: ServiceDefinition;
  implementation: UntypedServiceImplementation;
}

/**
 * The services of the driver, from `proto/csi.proto`. Without CONTROLLER_SERVICE the controller is not served.
 *
 * @throws when the proto file is missing.
 */
export function hostpathServices(
  driver: HostpathDriver,
  options: Omit<ServeOptions, 'methods' | 'isThere'>,
): ServedService[] {
  const methods = new Set(Object.values(calls).flatMap((service) => Object.keys(service)));
  const isThere = ({ name = '' }: { name?: string }): boolean => driver.state.volumes.getByName(name) !== undefined;
  const csi = csiServices();
  return Object.entries(calls)
    .filter(([service]) => service !== 'Controller' || driver.capabilities.plugin.has('CONTROLLER_SERVICE'))
    .map(([service, calls]) => ({
      definition: csi[`csi.v1.${service}`]!,
      implementation: Object.fromEntries(
        Object.entries(calls).map(([method, call]) => {
          // The proto file types the requests at run time; each call states what it reads of them.
          const handler = call as (driver: HostpathDriver, request: object) => unknown;
          return [
            method,
            serveCall(method, (request: object) => handler(driver, request), { ...options, methods, isThere }),
          ];
        }),
      ),
    }));
}
