// Original file: proto/csi.proto


export interface DeleteSnapshotRequest {
  'snapshot_id'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface DeleteSnapshotRequest__Output {
  'snapshot_id'?: (string);
  'secrets'?: ({[key: string]: string});
}
