import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { csiServices } from '../csi-services.ts';
import { readCapability, required } from './arguments.ts';
import { CallError } from './call-error.ts';
import { controllerModifyVolume, createVolume } from './create-volume.ts';
import { getCapacity } from './free-room.ts';
import { changeVolume, type HostpathDriver, needController } from './hostpath-driver.ts';
import type { ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, StringMap } from './messages.ts';
import { nodeExpandVolume, nodeGetCapabilities, nodeGetInfo, nodeGetVolumeStats } from './node-info.ts';
import { nodePublishVolume, nodeStageVolume, nodeUnpublishVolume, nodeUnstageVolume } from './node-mounts.ts';
import { serveCall, type ServeOptions } from './serve-call.ts';
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
interface ServedService {
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

/** ControllerPublishVolume: notes the attachment; a volume in a single-node mode goes to one node at a time. */
async function controllerPublishVolume(
  driver: HostpathDriver,
  request: ControllerPublishVolumeRequest,
): Promise<{ publish_context: StringMap }> {
  needController(driver, 'PUBLISH_UNPUBLISH_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const node = required(request.node_id, 'node_id');
  const access = readCapability(
    request.volume_capability,
    driver.capabilities.controller.has('SINGLE_NODE_MULTI_WRITER'),
  );
  const readonly = request.readonly ?? false;
  await changeVolume(driver, id, (volume) => {
    if (!driver.nodeIds.includes(node)) throw new CallError('NOT_FOUND', `node ${node} does not exist`);
    if (access.type !== volume.accessType) {
      throw new CallError('INVALID_ARGUMENT', `volume ${id} is a ${volume.accessType} volume`);
    }
    const before = volume.attached[node];
    if (before !== undefined && before.readonly !== readonly) {
      const how = before.readonly ? 'readonly' : 'writable';
      throw new CallError('ALREADY_EXISTS', `volume ${id} is already attached to node ${node}, ${how}`);
    }
    const other = Object.keys(volume.attached).find((attached) => attached !== node);
    if (other !== undefined && access.mode.startsWith('SINGLE_NODE_')) {
      throw new CallError('FAILED_PRECONDITION', `volume ${id} is attached to node ${other}`);
    }
    return { ...volume, attached: { ...volume.attached, [node]: { readonly } } };
  });
  return { publish_context: {} };
}

/** ControllerUnpublishVolume: from every node when none is named; what is not attached is a success. */
async function controllerUnpublishVolume(
  driver: HostpathDriver,
  request: ControllerUnpublishVolumeRequest,
): Promise<object> {
  needController(driver, 'PUBLISH_UNPUBLISH_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const node = request.node_id ?? '';
  if (driver.state.volumes.get(id) === undefined) return {}; // a deleted volume is attached nowhere
  await changeVolume(driver, id, (volume) => ({
    ...volume,
    attached: Object.fromEntries(Object.entries(volume.attached).filter(([name]) => node !== '' && name !== node)),
  }));
  return {};
}

/** The driver's own version; not that of any product. */
const vendorVersion = '1.0.0';

/** GetPluginInfo. */
function getPluginInfo(driver: HostpathDriver): { name: string; vendor_version: string; manifest: StringMap } {
  return { name: driver.driverName, vendor_version: vendorVersion, manifest: {} };
}

/** GetPluginCapabilities. */
function getPluginCapabilities(driver: HostpathDriver): { capabilities: object[] } {
  const capabilities = [...driver.capabilities.plugin].map((type) =>
    type === 'ONLINE' ? { volume_expansion: { type } } : { service: { type } },
  );
  return { capabilities };
}

/** Probe: a driver that responds is ready; `faults.json` can say otherwise. */
function probe(): { ready: { value: boolean } } {
  return { ready: { value: true } };
}

/** ControllerGetCapabilities. */
function controllerGetCapabilities(driver: HostpathDriver): { capabilities: { rpc: { type: string } }[] } {
  return { capabilities: [...driver.capabilities.controller].map((type) => ({ rpc: { type } })) };
}
