// Original file: proto/csi.proto


export interface ControllerUnpublishVolumeRequest {
  'volume_id'?: (string);
  'node_id'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface ControllerUnpublishVolumeRequest__Output {
  'volume_id'?: (string);
  'node_id'?: (string);
  'secrets'?: ({[key: string]: string});
}
