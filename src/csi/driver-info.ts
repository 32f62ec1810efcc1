import { untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { CsiCallError, errorMessage } from './call-error.ts';
import type { CsiCalls } from './csi-calls.ts';
import type { CallOptions } from './unary-call.ts';

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

/** What an operation needs of the driver beyond CREATE_DELETE_VOLUME. */
interface Needs {
  snapshotRestore?: boolean;
  clone?: boolean;
  attributesClass?: boolean;
}

/**
 * The first capability the driver lacks, as an error text; undefined when it has all of them. The order decides which
 * of several is reported.
 */
export function missingCapability(has: DriverCapabilities, needs: Needs = {}): string | undefined {
  if (!has.controllerService) return lack('dynamic provisioning', 'plugin CONTROLLER_SERVICE');
  if (!has.createDeleteVolume) return lack('dynamic provisioning', 'controller CREATE_DELETE_VOLUME');
  if (needs.snapshotRestore === true && !has.createDeleteSnapshot) {
    return lack('snapshot restore', 'controller CREATE_DELETE_SNAPSHOT');
  }
  if (needs.clone === true && !has.cloneVolume) return lack('clone operations', 'controller CLONE_VOLUME');
  if (needs.attributesClass === true && !has.modifyVolume) {
    return lack('VolumeAttributesClass', 'controller MODIFY_VOLUME');
  }
  return undefined;
}

function lack(what: string, capability: string): string {
  return `CSI driver does not support ${what}: ${capability} capability is not reported`;
}

/** Pause between attempts, counted from the start of the one before, in milliseconds. */
const pauseMs = 1000;

/**
 * Probes the driver until it is ready, once a second and without a limit. An absent `ready` means ready; "not ready"
 * and a timed-out call are retried (CSI spec, `Probe`).
 *
 * @throws {Error} `CSI driver probe failed: ...` for any other failure; the signal's reason when it aborts.
 */
export async function probeUntilReady(options: {
  calls: Pick<CsiCalls, 'probe'>;
  logger: Logger;
  clock: Clock;
  signal?: AbortSignal;
}): Promise<void> {
  const { calls, logger, clock, signal } = options;
  for (;;) {
    const start = clock.monotonicMs();
    logger.info({}, 'Probing CSI driver for readiness');
    if (await isReady(calls, logger, signal)) return;
    await clock.sleep(start + pauseMs - clock.monotonicMs(), signal === undefined ? {} : { signal });
  }
}

async function isReady(calls: Pick<CsiCalls, 'probe'>, logger: Logger, signal?: AbortSignal): Promise<boolean> {
  try {
    const { ready } = await calls.probe({ signal });
    // A BoolValue with the default value arrives without its inner field.
    if (ready === undefined || ready.value === true) return true;
    logger.info({}, 'CSI driver is not ready');
    return false;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof CsiCallError && error.codeName === 'DeadlineExceeded') {
      logger.info({}, 'CSI driver probe timed out');
      return false;
    }
    throw new Error(`CSI driver probe failed: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * Resolves once the driver has a capability: now, or when it reconnects as another version.
 *
 * @throws the signal's reason when it aborts first.
 */
export async function untilCapable(
  driver: { readonly capabilities: DriverCapabilities; onReconnected(handler: () => void): Disposable },
  isCapable: (capabilities: DriverCapabilities) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const check = (): void => {
    if (isCapable(driver.capabilities)) resolve(undefined);
  };
  using _back = driver.onReconnected(check);
  check();
  await untilAborted(promise, signal);
}
