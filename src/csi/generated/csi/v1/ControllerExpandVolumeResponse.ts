// Original file: proto/csi.proto

import type { Long } from '@grpc/proto-loader';

export interface ControllerExpandVolumeResponse {
  'capacity_bytes'?: (number | string | Long);
  'node_expansion_required'?: (boolean);
}

export interface ControllerExpandVolumeResponse__Output {
  'capacity_bytes'?: (string);
  'node_expansion_required'?: (boolean);
}
