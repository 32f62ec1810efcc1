// Original file: proto/csi.proto

import type { Volume as _csi_v1_Volume, Volume__Output as _csi_v1_Volume__Output } from '../../csi/v1/Volume.ts';

export interface _csi_v1_ListVolumesResponse_Entry {
  'volume'?: (_csi_v1_Volume | null);
  'status'?: (_csi_v1_ListVolumesResponse_VolumeStatus | null);
}

export interface _csi_v1_ListVolumesResponse_Entry__Output {
  'volume'?: (_csi_v1_Volume__Output);
  'status'?: (_csi_v1_ListVolumesResponse_VolumeStatus__Output);
}

export interface _csi_v1_ListVolumesResponse_VolumeStatus {
  'published_node_ids'?: (string)[];
}

export interface _csi_v1_ListVolumesResponse_VolumeStatus__Output {
  'published_node_ids'?: (string)[];
}

export interface ListVolumesResponse {
  'entries'?: (_csi_v1_ListVolumesResponse_Entry)[];
  'next_token'?: (string);
}

export interface ListVolumesResponse__Output {
  'entries'?: (_csi_v1_ListVolumesResponse_Entry__Output)[];
  'next_token'?: (string);
}
