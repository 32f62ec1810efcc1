// Original file: proto/csi.proto

import type { VolumeUsage as _csi_v1_VolumeUsage, VolumeUsage__Output as _csi_v1_VolumeUsage__Output } from '../../csi/v1/VolumeUsage.ts';

export interface NodeGetVolumeStatsResponse {
  'usage'?: (_csi_v1_VolumeUsage)[];
}

export interface NodeGetVolumeStatsResponse__Output {
  'usage'?: (_csi_v1_VolumeUsage__Output)[];
}
