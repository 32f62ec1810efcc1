// Original file: proto/csi.proto


export interface GetVolumeGroupSnapshotRequest {
  'group_snapshot_id'?: (string);
  'snapshot_ids'?: (string)[];
  'secrets'?: ({[key: string]: string});
}

export interface GetVolumeGroupSnapshotRequest__Output {
  'group_snapshot_id'?: (string);
  'snapshot_ids'?: (string)[];
  'secrets'?: ({[key: string]: string});
}
