/** The controller's calls on volumes that exist. */
import { readCapabilities, readCapability, readCapacityRange, required } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { changeVolume, knownVolume, needController } from './hostpath-driver.ts';
import { freeRoom } from './free-room.ts';
import type { Page } from './list-page.ts';
import { listPage } from './list-page.ts';
import type {
  ControllerExpandVolumeRequest,
  DeleteVolumeRequest,
  PageRequest,
  ValidateVolumeCapabilitiesRequest,
  ValidateVolumeCapabilitiesResponse,
  Volume,
  VolumeIdRequest,
  VolumeStatus,
} from './messages.ts';
import { isMountPoint } from './mounts.ts';
import { volumeMessage, volumeStatus } from './volume-message.ts';
import { resizeBlockContent } from './volume-content.ts';

/**
 * DeleteVolume: unknown ids are a success. A volume whose class has the parameter `requireSecretOnDelete` goes only
 * when the secrets have that key.
 */
export async function deleteVolume(driver: HostpathDriver, request: DeleteVolumeRequest): Promise<object> {
  needController(driver, 'CREATE_DELETE_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  await driver.pending.run(`volume ${id}`, async () => {
    const volume = driver.state.volumes.get(id);
    if (volume === undefined) return;
    const { requireSecretOnDelete: key } = volume.parameters as { requireSecretOnDelete?: string };
    if (key !== undefined && !Object.hasOwn(request.secrets ?? {}, key)) {
      throw new CallError('INVALID_ARGUMENT', `secrets must have the key ${key}`);
    }
    const [node] = Object.keys(volume.attached);
    if (node !== undefined) throw new CallError('FAILED_PRECONDITION', `volume ${id} is attached to node ${node}`);
    // After a restart of the machine the record still names paths that are no longer mounted.
    const mounted = [...Object.keys(volume.published), ...volume.stagingPaths].find((target) => isMountPoint(target));
    if (mounted !== undefined) throw new CallError('FAILED_PRECONDITION', `volume ${id} is mounted at ${mounted}`);
    await driver.state.volumes.remove(id);
  });
  return {};
}

/** ValidateVolumeCapabilities: what differs is in `message`, without `confirmed`. */
export function validateVolumeCapabilities(
  driver: HostpathDriver,
  request: ValidateVolumeCapabilitiesRequest,
): ValidateVolumeCapabilitiesResponse {
  const id = required(request.volume_id, 'volume_id');
  const capabilities = required(request.volume_capabilities, 'volume_capabilities');
  const volume = knownVolume(driver, id);
  const accessType = readCapabilities(capabilities, driver.capabilities.controller.has('SINGLE_NODE_MULTI_WRITER'));
  if (accessType !== volume.accessType) return { message: `volume ${id} is a ${volume.accessType} volume` };
  const asked = { ...request.volume_context, ...request.parameters };
  const differs = Object.keys(asked).find((key) => asked[key] !== volume.parameters[key]);
  if (differs !== undefined) return { message: `volume ${id} was made with another ${differs}` };
  return {
    confirmed: {
      volume_context: request.volume_context ?? {},
      volume_capabilities: capabilities,
      parameters: request.parameters ?? {},
      mutable_parameters: request.mutable_parameters ?? {},
    },
  };
}

/** ListVolumes, oldest first. */
export function listVolumes(
  driver: HostpathDriver,
  request: PageRequest,
): Page<{ volume: Volume; status: VolumeStatus }> {
  needController(driver, 'LIST_VOLUMES');
  const page = listPage(driver.state.volumes.all(), request);
  return {
    ...page,
    entries: page.entries.map((volume) => ({ volume: volumeMessage(volume), status: volumeStatus(volume) })),
  };
}

/** ControllerGetVolume. */
export function controllerGetVolume(
  driver: HostpathDriver,
  request: VolumeIdRequest,
): { volume: Volume; status: VolumeStatus } {
  needController(driver, 'GET_VOLUME');
  const volume = knownVolume(driver, required(request.volume_id, 'volume_id'));
  return { volume: volumeMessage(volume), status: volumeStatus(volume) };
}

/** ControllerExpandVolume: a volume that is already large enough stays as it is. */
export async function controllerExpandVolume(
  driver: HostpathDriver,
  request: ControllerExpandVolumeRequest,
): Promise<{ capacity_bytes: string; node_expansion_required: boolean }> {
  needController(driver, 'EXPAND_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const { requiredBytes, limitBytes } = readCapacityRange(required(request.capacity_range, 'capacity_range'));
  const multiWriter = driver.capabilities.controller.has('SINGLE_NODE_MULTI_WRITER');
  const volume = await changeVolume(driver, id, async (volume) => {
    const capability = request.volume_capability;
    if (capability !== undefined && readCapability(capability, multiWriter).type !== volume.accessType) {
      throw new CallError('INVALID_ARGUMENT', `volume ${id} is a ${volume.accessType} volume`);
    }
    const bytes = BigInt(volume.capacityBytes);
    if (limitBytes !== undefined && limitBytes < bytes) {
      throw new CallError('OUT_OF_RANGE', `volume ${id} has ${bytes} bytes, more than limit_bytes ${limitBytes}`);
    }
    if (requiredBytes <= bytes) return volume;
    if (requiredBytes - bytes > freeRoom(driver, volume.segments)) {
      throw new CallError('OUT_OF_RANGE', `there is no room to grow volume ${id} to ${requiredBytes} bytes`);
    }
    if (volume.accessType === 'block') {
      await resizeBlockContent(driver.state.volumes.contentPath(id), requiredBytes);
    }
    return { ...volume, capacityBytes: String(requiredBytes) };
  });
  // A directory needs nothing more; a loop device must be notified that its file has grown.
  const onNode = volume.accessType === 'block' && driver.capabilities.node.has('EXPAND_VOLUME');
  return { capacity_bytes: volume.capacityBytes, node_expansion_required: onNode };
}
