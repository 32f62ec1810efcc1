// Original file: proto/csi.proto


export interface _csi_v1_VolumeContentSource_SnapshotSource {
  'snapshot_id'?: (string);
}

export interface _csi_v1_VolumeContentSource_SnapshotSource__Output {
  'snapshot_id'?: (string);
}

export interface _csi_v1_VolumeContentSource_VolumeSource {
  'volume_id'?: (string);
}

export interface _csi_v1_VolumeContentSource_VolumeSource__Output {
  'volume_id'?: (string);
}

export interface VolumeContentSource {
  'snapshot'?: (_csi_v1_VolumeContentSource_SnapshotSource | null);
  'volume'?: (_csi_v1_VolumeContentSource_VolumeSource | null);
  'type'?: "snapshot"|"volume";
}

export interface VolumeContentSource__Output {
  'snapshot'?: (_csi_v1_VolumeContentSource_SnapshotSource__Output);
  'volume'?: (_csi_v1_VolumeContentSource_VolumeSource__Output);
  'type'?: "snapshot"|"volume";
}
