import path from 'node:path';
import type { StringMap } from './messages.ts';
import { RecordFolder } from './record-folder.ts';
import type { StoredRecord } from './record-folder.ts';

/** How a volume is used: as a file system or as a raw device. */
export type AccessType = 'mount' | 'block';

/** A volume as it stands on disk. */
export interface VolumeRecord extends StoredRecord {
  /** Decimal bytes. */
  capacityBytes: string;
  /** `mount`: the content is a directory; `block`: a sparse file of the volume's size. */
  accessType: AccessType;
  parameters: StringMap;
  mutableParameters: StringMap;
  /** Absent for a driver without topology. */
  segments?: StringMap;
  source?: { snapshotId: string } | { volumeId: string };
  /** By node id. */
  attached: Record<string, { readonly: boolean }>;
  stagingPaths: string[];
  /** By target path. */
  published: Record<string, { readonly: boolean; mode: string }>;
}

/** A snapshot as it stands on disk. */
export interface SnapshotRecord extends StoredRecord {
  sourceVolumeId: string;
  /** Decimal bytes. */
  sizeBytes: string;
  accessType: AccessType;
  /** RFC 3339. */
  createdAt: string;
}

/** Everything the driver remembers. */
export interface HostpathState {
  volumes: RecordFolder<VolumeRecord>;
  snapshots: RecordFolder<SnapshotRecord>;
}

/** Opens the state directory, which is made when missing; see `RecordFolder` for what a restart finds. */
export function openState(stateDir: string): HostpathState {
  return {
    volumes: new RecordFolder(path.join(stateDir, 'volumes')),
    snapshots: new RecordFolder(path.join(stateDir, 'snapshots')),
  };
}
