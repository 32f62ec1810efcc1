// Original file: proto/csi.proto

import type { Snapshot as _csi_v1_Snapshot, Snapshot__Output as _csi_v1_Snapshot__Output } from '../../csi/v1/Snapshot.ts';

export interface _csi_v1_ListSnapshotsResponse_Entry {
  'snapshot'?: (_csi_v1_Snapshot | null);
}

export interface _csi_v1_ListSnapshotsResponse_Entry__Output {
  'snapshot'?: (_csi_v1_Snapshot__Output);
}

export interface ListSnapshotsResponse {
  'entries'?: (_csi_v1_ListSnapshotsResponse_Entry)[];
  'next_token'?: (string);
}

export interface ListSnapshotsResponse__Output {
  'entries'?: (_csi_v1_ListSnapshotsResponse_Entry__Output)[];
  'next_token'?: (string);
}
