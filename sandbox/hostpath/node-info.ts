/** The node's calls that only read a volume, and those about the node itself. */
import { lstatSync, readdirSync, statfsSync } from 'node:fs';
import path from 'node:path';
import { readCapacityRange, required } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { changeVolume, knownVolume, needNode } from './hostpath-driver.ts';
import type { VolumeRecord } from './hostpath-state.ts';
import type { NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, Topology, VolumeUsage } from './messages.ts';
import { growLoopDevice, isMountPoint } from './mounts.ts';
import { ownSegments } from './segments.ts';
import { resizeBlockContent } from './volume-content.ts';

/** NodeGetInfo. */
export function nodeGetInfo(driver: HostpathDriver): { node_id: string; accessible_topology?: Topology } {
  const segments = ownSegments(driver.topology);
  return {
    node_id: driver.nodeIds[0] ?? '',
    ...(driver.capabilities.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')
      ? { accessible_topology: { segments } }
      : {}),
  };
}

/** NodeGetCapabilities. */
export function nodeGetCapabilities(driver: HostpathDriver): { capabilities: { rpc: { type: string } }[] } {
  return { capabilities: [...driver.capabilities.node].map((type) => ({ rpc: { type } })) };
}

/** NodeGetVolumeStats: what the volume's files take; the size is the volume's own, though nothing enforces it. */
export function nodeGetVolumeStats(
  driver: HostpathDriver,
  request: NodeGetVolumeStatsRequest,
): { usage: VolumeUsage[] } {
  needNode(driver, 'GET_VOLUME_STATS');
  const id = required(request.volume_id, 'volume_id');
  const volumePath = required(request.volume_path, 'volume_path');
  const volume = knownVolume(driver, id);
  checkPath(volume, volumePath);
  return { usage: usageOf(volume, driver.state.volumes.contentPath(id)) };
}

/** NodeExpandVolume: grows the loop device of a block volume; a directory needs nothing. Repeatable. */
export async function nodeExpandVolume(
  driver: HostpathDriver,
  request: NodeExpandVolumeRequest,
): Promise<{ capacity_bytes: string }> {
  needNode(driver, 'EXPAND_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const volumePath = required(request.volume_path, 'volume_path');
  const { requiredBytes } = readCapacityRange(request.capacity_range);
  const volume = await changeVolume(driver, id, async (volume) => {
    checkPath(volume, volumePath);
    const grows = requiredBytes > BigInt(volume.capacityBytes);
    if (grows && driver.capabilities.controller.has('EXPAND_VOLUME')) {
      throw new CallError('OUT_OF_RANGE', `volume ${id} has ${volume.capacityBytes} bytes: the controller goes first`);
    }
    const changed = grows ? { ...volume, capacityBytes: String(requiredBytes) } : volume;
    if (volume.accessType === 'block') {
      const content = driver.state.volumes.contentPath(id);
      await resizeBlockContent(content, BigInt(changed.capacityBytes));
      await growLoopDevice(content);
    }
    return changed;
  });
  return { capacity_bytes: volume.capacityBytes };
}

function checkPath(volume: VolumeRecord, volumePath: string): void {
  const known = volume.published[volumePath] !== undefined || volume.stagingPaths.includes(volumePath);
  if (known && (isMountPoint(volumePath) || volume.accessType === 'block')) return;
  throw new CallError('NOT_FOUND', `volume ${volume.id} is not at ${volumePath}`);
}

function usageOf(volume: VolumeRecord, content: string): VolumeUsage[] {
  if (volume.accessType === 'block') return [{ unit: 'BYTES', total: volume.capacityBytes }];
  const { bytes, inodes } = filesBelow(content);
  const total = BigInt(volume.capacityBytes);
  const free = total > bytes ? total - bytes : 0n;
  const { ffree } = statfsSync(content, { bigint: true });
  return [
    { unit: 'BYTES', total: String(total), used: String(bytes), available: String(free) },
    { unit: 'INODES', total: String(inodes + ffree), used: String(inodes), available: String(ffree) },
  ];
}

function filesBelow(content: string): { bytes: bigint; inodes: bigint } {
  const sum = { bytes: 0n, inodes: 0n };
  const entries = readdirSync(content, { recursive: true, withFileTypes: true });
  for (const file of [content, ...entries.map((entry) => path.join(entry.parentPath, entry.name))]) {
    const found = lstatSync(file, { bigint: true, throwIfNoEntry: false }); // may have gone meanwhile
    if (found === undefined) continue;
    sum.bytes += found.blocks * 512n;
    sum.inodes += 1n;
  }
  return sum;
}
