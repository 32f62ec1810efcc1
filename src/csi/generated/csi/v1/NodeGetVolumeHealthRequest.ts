// Original file: proto/csi.proto


export interface NodeGetVolumeHealthRequest {
  'volume_id'?: (string);
  'volume_publish_path'?: (string);
  'staging_target_path'?: (string);
}

export interface NodeGetVolumeHealthRequest__Output {
  'volume_id'?: (string);
  'volume_publish_path'?: (string);
  'staging_target_path'?: (string);
}
