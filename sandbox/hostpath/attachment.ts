import { readCapability, required } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { changeVolume, needController } from './hostpath-driver.ts';
import type { ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, StringMap } from './messages.ts';

/** ControllerPublishVolume: notes the attachment; a volume in a single-node mode goes to one node at a time. */
export async function controllerPublishVolume(
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
export async function controllerUnpublishVolume(
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
