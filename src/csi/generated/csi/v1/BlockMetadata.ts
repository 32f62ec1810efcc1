// Original file: proto/csi.proto

import type { Long } from '@grpc/proto-loader';

export interface BlockMetadata {
  'byte_offset'?: (number | string | Long);
  'size_bytes'?: (number | string | Long);
}

export interface BlockMetadata__Output {
  'byte_offset'?: (string);
  'size_bytes'?: (string);
}
