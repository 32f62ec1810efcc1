// Original file: proto/csi.proto

import type { Timestamp as _google_protobuf_Timestamp, Timestamp__Output as _google_protobuf_Timestamp__Output } from '../../google/protobuf/Timestamp.ts';
import type { Topology as _csi_v1_Topology, Topology__Output as _csi_v1_Topology__Output } from '../../csi/v1/Topology.ts';
import type { Long } from '@grpc/proto-loader';

export interface Snapshot {
  'size_bytes'?: (number | string | Long);
  'snapshot_id'?: (string);
  'source_volume_id'?: (string);
  'creation_time'?: (_google_protobuf_Timestamp | null);
  'ready_to_use'?: (boolean);
  'group_snapshot_id'?: (string);
  'accessible_topology'?: (_csi_v1_Topology)[];
}

export interface Snapshot__Output {
  'size_bytes'?: (string);
  'snapshot_id'?: (string);
  'source_volume_id'?: (string);
  'creation_time'?: (_google_protobuf_Timestamp__Output);
  'ready_to_use'?: (boolean);
  'group_snapshot_id'?: (string);
  'accessible_topology'?: (_csi_v1_Topology__Output)[];
}
