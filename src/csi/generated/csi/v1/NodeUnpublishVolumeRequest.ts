// Original file: proto/csi.proto


export interface NodeUnpublishVolumeRequest {
  'volume_id'?: (string);
  'target_path'?: (string);
}

export interface NodeUnpublishVolumeRequest__Output {
  'volume_id'?: (string);
  'target_path'?: (string);
}
