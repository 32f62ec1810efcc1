import { CallError } from './call-error.ts';
import type { Capabilities, ControllerCapability, NodeCapability } from './capabilities.ts';
import type { HostpathState, VolumeRecord } from './hostpath-state.ts';
import type { StringMap } from './messages.ts';
import type { PendingOperations } from './pending-operations.ts';
import type { ServedTopology } from './segments.ts';

/** What the calls of all three services share. */
export interface HostpathDriver {
  readonly driverName: string;
  /** The first is the node this process runs on. */
  readonly nodeIds: readonly string[];
  /** Room of each topology segment, in bytes. */
  readonly capacityBytes: bigint;
  readonly topology: ServedTopology;
  /** Keys that ControllerModifyVolume accepts. */
  readonly mutableParameters: readonly string[];
  readonly capabilities: Capabilities;
  /** Whether volume ids begin with the name of the request. */
  readonly namedIds: boolean;
  readonly state: HostpathState;
  readonly pending: PendingOperations;
  /** Room taken by volumes whose content is still being made. */
  readonly reservations: Set<{ bytes: bigint; segments: StringMap | undefined }>;
}

/** @throws {CallError} `UNIMPLEMENTED` when the controller service does not announce the capability. */
export function needController(driver: HostpathDriver, capability: ControllerCapability): void {
  if (driver.capabilities.controller.has(capability)) return;
  throw new CallError('UNIMPLEMENTED', `the controller service does not offer ${capability}`);
}

/** @throws {CallError} `UNIMPLEMENTED` when the node service does not announce the capability. */
export function needNode(driver: HostpathDriver, capability: NodeCapability): void {
  if (driver.capabilities.node.has(capability)) return;
  throw new CallError('UNIMPLEMENTED', `the node service does not offer ${capability}`);
}

/** @throws {CallError} `NOT_FOUND` for an unknown volume. */
export function knownVolume(driver: HostpathDriver, id: string): VolumeRecord {
  const volume = driver.state.volumes.get(id);
  if (volume === undefined) throw new CallError('NOT_FOUND', `volume ${id} does not exist`);
  return volume;
}

/** Runs `change` on a known volume with no other operation on it going on, and stores what it returns. */
export async function changeVolume(
  driver: HostpathDriver,
  id: string,
  change: (volume: VolumeRecord) => Promise<VolumeRecord> | VolumeRecord,
): Promise<VolumeRecord> {
  return driver.pending.run(`volume ${id}`, async () => {
    const volume = knownVolume(driver, id);
    const changed = await change(volume);
    if (changed !== volume) driver.state.volumes.update(changed);
    return changed;
  });
}
