import { existsSync } from 'node:fs';
import type { HostpathDriver } from './hostpath-driver.ts';
import type { VolumeRecord } from './hostpath-state.ts';
import type { Volume, VolumeCondition, VolumeContentSource, VolumeStatus } from './messages.ts';
import { accessibleTopology } from './segments.ts';

/** A stored volume as the calls return it. */
export function volumeMessage(volume: VolumeRecord): Volume {
  return {
    volume_id: volume.id,
    capacity_bytes: volume.capacityBytes,
    volume_context: volume.parameters,
    ...(volume.source === undefined ? {} : { content_source: sourceMessage(volume.source) }),
    ...accessibleTopology(volume.segments),
  };
}

function sourceMessage(source: NonNullable<VolumeRecord['source']>): VolumeContentSource {
  return 'snapshotId' in source
    ? { snapshot: { snapshot_id: source.snapshotId } }
    : { volume: { volume_id: source.volumeId } };
}

/** Where a volume is attached and, with VOLUME_CONDITION, how it is. */
export function volumeStatus(driver: HostpathDriver, volume: VolumeRecord): VolumeStatus {
  return {
    published_node_ids: Object.keys(volume.attached).sort(),
    ...(driver.capabilities.controller.has('VOLUME_CONDITION')
      ? { volume_condition: volumeCondition(driver, volume) }
      : {}),
  };
}

/** A volume is abnormal when its content is gone. */
export function volumeCondition(driver: HostpathDriver, volume: VolumeRecord): VolumeCondition {
  const present = existsSync(driver.state.volumes.contentPath(volume.id));
  return { abnormal: !present, message: present ? 'the volume is healthy' : 'the content is missing' };
}
