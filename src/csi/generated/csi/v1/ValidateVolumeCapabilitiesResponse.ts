// Original file: proto/csi.proto

import type { VolumeCapability as _csi_v1_VolumeCapability, VolumeCapability__Output as _csi_v1_VolumeCapability__Output } from '../../csi/v1/VolumeCapability.ts';

export interface _csi_v1_ValidateVolumeCapabilitiesResponse_Confirmed {
  'volume_context'?: ({[key: string]: string});
  'volume_capabilities'?: (_csi_v1_VolumeCapability)[];
  'parameters'?: ({[key: string]: string});
  'mutable_parameters'?: ({[key: string]: string});
}

export interface _csi_v1_ValidateVolumeCapabilitiesResponse_Confirmed__Output {
  'volume_context'?: ({[key: string]: string});
  'volume_capabilities'?: (_csi_v1_VolumeCapability__Output)[];
  'parameters'?: ({[key: string]: string});
  'mutable_parameters'?: ({[key: string]: string});
}

export interface ValidateVolumeCapabilitiesResponse {
  'confirmed'?: (_csi_v1_ValidateVolumeCapabilitiesResponse_Confirmed | null);
  'message'?: (string);
}

export interface ValidateVolumeCapabilitiesResponse__Output {
  'confirmed'?: (_csi_v1_ValidateVolumeCapabilitiesResponse_Confirmed__Output);
  'message'?: (string);
}
