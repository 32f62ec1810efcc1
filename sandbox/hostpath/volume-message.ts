import type { VolumeRecord } from './hostpath-state.ts';
import type { Volume, VolumeContentSource, VolumeStatus } from './messages.ts';
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

/** Where a volume is attached. */
export function volumeStatus(volume: VolumeRecord): VolumeStatus {
  return { published_node_ids: Object.keys(volume.attached).sort() };
}
