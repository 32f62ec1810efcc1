// Original file: proto/csi.proto

import type { VolumeCapability as _csi_v1_VolumeCapability, VolumeCapability__Output as _csi_v1_VolumeCapability__Output } from '../../csi/v1/VolumeCapability.ts';
import type { Topology as _csi_v1_Topology, Topology__Output as _csi_v1_Topology__Output } from '../../csi/v1/Topology.ts';

export interface GetCapacityRequest {
  'volume_capabilities'?: (_csi_v1_VolumeCapability)[];
  'parameters'?: ({[key: string]: string});
  'accessible_topology'?: (_csi_v1_Topology | null);
}

export interface GetCapacityRequest__Output {
  'volume_capabilities'?: (_csi_v1_VolumeCapability__Output)[];
  'parameters'?: ({[key: string]: string});
  'accessible_topology'?: (_csi_v1_Topology__Output);
}
