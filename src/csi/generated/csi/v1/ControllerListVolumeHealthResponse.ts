// Original file: proto/csi.proto

import type { VolumeHealth as _csi_v1_VolumeHealth, VolumeHealth__Output as _csi_v1_VolumeHealth__Output } from '../../csi/v1/VolumeHealth.ts';

export interface ControllerListVolumeHealthResponse {
  'entries'?: (_csi_v1_VolumeHealth)[];
  'next_token'?: (string);
}

export interface ControllerListVolumeHealthResponse__Output {
  'entries'?: (_csi_v1_VolumeHealth__Output)[];
  'next_token'?: (string);
}
