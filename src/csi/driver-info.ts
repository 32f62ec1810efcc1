import type { CallOptions } from './unary-call.ts';
import type { CsiCalls } from './csi-calls.ts';
import { errorMessage } from './error-message.ts';

/**
 * The capabilities that the driver reports: plugin capabilities first, then controller capabilities (CSI spec,
 * `GetPluginCapabilities`, `ControllerGetCapabilities`). Frozen.
 */
export interface DriverCapabilities {
  readonly controllerService: boolean;
  readonly volumeAccessibilityConstraints: boolean;
  readonly createDeleteVolume: boolean;
  readonly publishUnpublishVolume: boolean;
  readonly createDeleteSnapshot: boolean;
  readonly cloneVolume: boolean;
  readonly modifyVolume: boolean;
  readonly singleNodeMultiWriter: boolean;
  readonly listVolumes: boolean;
  readonly getVolume: boolean;
  readonly getCapacity: boolean;
}

/** The capabilities record for lists of names as in the CSI spec, such as `CREATE_DELETE_VOLUME`. */
export function driverCapabilities(plugin: Iterable<string>, controller: Iterable<string>): DriverCapabilities {
  const pluginNames = new Set(plugin);
  const controllerNames = new Set(controller);
  return Object.freeze({
    controllerService: pluginNames.has('CONTROLLER_SERVICE'),
    volumeAccessibilityConstraints: pluginNames.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
    createDeleteVolume: controllerNames.has('CREATE_DELETE_VOLUME'),
    publishUnpublishVolume: controllerNames.has('PUBLISH_UNPUBLISH_VOLUME'),
    createDeleteSnapshot: controllerNames.has('CREATE_DELETE_SNAPSHOT'),
    cloneVolume: controllerNames.has('CLONE_VOLUME'),
    modifyVolume: controllerNames.has('MODIFY_VOLUME'),
    singleNodeMultiWriter: controllerNames.has('SINGLE_NODE_MULTI_WRITER'),
    listVolumes: controllerNames.has('LIST_VOLUMES'),
    getVolume: controllerNames.has('GET_VOLUME'),
    getCapacity: controllerNames.has('GET_CAPACITY'),
  });
}

/**
 * The driver's name and version, queried once. The version may be empty.
 *
 * @throws {Error} `Error getting CSI driver name: ...`, also for an empty name.
 */
export async function readDriverInfo(
  calls: Pick<CsiCalls, 'getPluginInfo'>,
  options: CallOptions = {},
): Promise<{ name: string; vendorVersion: string }> {
  try {
    const { name = '', vendor_version: vendorVersion = '' } = await calls.getPluginInfo(options);
    if (name === '') throw new Error('driver name is empty');
    return { name, vendorVersion };
  } catch (error) {
    throw new Error(`Error getting CSI driver name: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * The driver's capabilities, queried once each. Unknown and empty entries are skipped, repeated ones count once.
 *
 * @throws {Error} `Error getting CSI driver capabilities: ...`
 */
export async function readCapabilities(
  calls: Pick<CsiCalls, 'getPluginCapabilities' | 'controllerGetCapabilities'>,
  options: CallOptions = {},
): Promise<DriverCapabilities> {
  try {
    const plugin = await calls.getPluginCapabilities(options);
    const controller = await calls.controllerGetCapabilities(options);
    return driverCapabilities(
      (plugin.capabilities ?? []).map(({ service }) => String(service?.type)),
      (controller.capabilities ?? []).map(({ rpc }) => String(rpc?.type)),
    );
  } catch (error) {
    throw new Error(`Error getting CSI driver capabilities: ${errorMessage(error)}`, { cause: error });
  }
}

/** The node that the driver runs on, with its topology (CSI spec, `NodeGetInfo`). */
export interface NodeInfo {
  readonly nodeId: string;
  /** Undefined: the driver did not report topology, which differs from an empty one. */
  readonly segments: Readonly<Record<string, string>> | undefined;
}

/**
 * The driver's NodeGetInfo, queried once.
 *
 * @throws {Error} `Failed to get node info from CSI driver: ...`, also from a driver that does not have the call.
 */
export async function readNodeInfo(calls: Pick<CsiCalls, 'nodeGetInfo'>, options: CallOptions = {}): Promise<NodeInfo> {
  try {
    const { node_id: nodeId = '', accessible_topology: topology } = await calls.nodeGetInfo(options);
    return Object.freeze({ nodeId, segments: topology && Object.freeze({ ...topology.segments }) });
  } catch (error) {
    throw new Error(`Failed to get node info from CSI driver: ${errorMessage(error)}`, { cause: error });
  }
}
