// Original file: proto/csi.proto

import type { Volume as _csi_v1_Volume, Volume__Output as _csi_v1_Volume__Output } from '../../csi/v1/Volume.ts';

export interface _csi_v1_ControllerGetVolumeResponse_VolumeStatus {
  'published_node_ids'?: (string)[];
}

export interface _csi_v1_ControllerGetVolumeResponse_VolumeStatus__Output {
  'published_node_ids'?: (string)[];
}

export interface ControllerGetVolumeResponse {
  'volume'?: (_csi_v1_Volume | null);
  'status'?: (_csi_v1_ControllerGetVolumeResponse_VolumeStatus | null);
}

export interface ControllerGetVolumeResponse__Output {
  'volume'?: (_csi_v1_Volume__Output);
  'status'?: (_csi_v1_ControllerGetVolumeResponse_VolumeStatus__Output);
}
