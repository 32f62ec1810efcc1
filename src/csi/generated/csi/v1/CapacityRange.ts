// Original file: proto/csi.proto

import type { Long } from '@grpc/proto-loader';

export interface CapacityRange {
  'required_bytes'?: (number | string | Long);
  'limit_bytes'?: (number | string | Long);
}

export interface CapacityRange__Output {
  'required_bytes'?: (string);
  'limit_bytes'?: (string);
}
