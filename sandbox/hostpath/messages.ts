/**
 * The messages of package csi.v1 that this driver reads and writes, by hand: the driver stands on the other side of
 * the socket and shares no code with the sidecar. int64 travels as decimal text, enums by name; absent fields are
 * absent.
 */

/** A `map<string, string>`. */
export type StringMap = Record<string, string>;

/** How a volume is to be used (CSI spec, "CreateVolume"). */
export interface VolumeCapability {
  block?: object;
  mount?: { fs_type?: string; mount_flags?: string[]; volume_mount_group?: string };
  /** A number where the value is newer than our proto file. */
  access_mode?: { mode?: string | number };
}

/** Sizes in bytes; absent or `0` means unset. */
export interface CapacityRange {
  required_bytes?: string;
  limit_bytes?: string;
}

/** What a new volume is a copy of; one of the two. */
export interface VolumeContentSource {
  snapshot?: { snapshot_id?: string };
  volume?: { volume_id?: string };
}

/** Nodes that carry all the segments. */
export interface Topology {
  segments?: StringMap;
}

/** Where a volume must be reachable from. */
export interface TopologyRequirement {
  requisite?: Topology[];
  preferred?: Topology[];
}

/** A volume in a response. */
export interface Volume {
  volume_id: string;
  capacity_bytes: string;
  volume_context: StringMap;
  content_source?: VolumeContentSource;
  accessible_topology?: Topology[];
}

/** A snapshot in a response. */
export interface Snapshot {
  snapshot_id: string;
  source_volume_id: string;
  size_bytes: string;
  creation_time: { seconds: string; nanos: number };
  ready_to_use: boolean;
}

/** Where a volume is attached. */
export interface VolumeStatus {
  published_node_ids: string[];
}

/** The request of CreateVolume. */
export interface CreateVolumeRequest {
  name?: string;
  capacity_range?: CapacityRange;
  volume_capabilities?: VolumeCapability[];
  parameters?: StringMap;
  secrets?: StringMap;
  volume_content_source?: VolumeContentSource;
  accessibility_requirements?: TopologyRequirement;
  mutable_parameters?: StringMap;
}

/** The request of DeleteVolume. */
export interface DeleteVolumeRequest {
  volume_id?: string;
  secrets?: StringMap;
}

/** The request of ValidateVolumeCapabilities. */
export interface ValidateVolumeCapabilitiesRequest {
  volume_id?: string;
  volume_context?: StringMap;
  volume_capabilities?: VolumeCapability[];
  parameters?: StringMap;
  mutable_parameters?: StringMap;
}

/** The response of ValidateVolumeCapabilities. */
export interface ValidateVolumeCapabilitiesResponse {
  confirmed?: {
    volume_context: StringMap;
    volume_capabilities: VolumeCapability[];
    parameters: StringMap;
    mutable_parameters: StringMap;
  };
  message?: string;
}

/** A page to list from; `starting_token` comes from the page before. */
export interface PageRequest {
  max_entries?: number;
  starting_token?: string;
}

/** The request of ListSnapshots. */
export interface ListSnapshotsRequest extends PageRequest {
  source_volume_id?: string;
  snapshot_id?: string;
}

/** The request of GetCapacity. */
export interface GetCapacityRequest {
  volume_capabilities?: VolumeCapability[];
  parameters?: StringMap;
  accessible_topology?: Topology;
}

/** The request of ControllerPublishVolume. */
export interface ControllerPublishVolumeRequest {
  volume_id?: string;
  node_id?: string;
  volume_capability?: VolumeCapability;
  readonly?: boolean;
}

/** The request of ControllerUnpublishVolume. */
export interface ControllerUnpublishVolumeRequest {
  volume_id?: string;
  node_id?: string;
}

/** The request of CreateSnapshot. */
export interface CreateSnapshotRequest {
  source_volume_id?: string;
  name?: string;
}

/** The request of DeleteSnapshot and GetSnapshot. */
export interface SnapshotIdRequest {
  snapshot_id?: string;
}

/** The request of ControllerGetVolume. */
export interface VolumeIdRequest {
  volume_id?: string;
}

/** The request of ControllerExpandVolume. */
export interface ControllerExpandVolumeRequest {
  volume_id?: string;
  capacity_range?: CapacityRange;
  volume_capability?: VolumeCapability;
}

/** The request of ControllerModifyVolume. */
export interface ControllerModifyVolumeRequest {
  volume_id?: string;
  mutable_parameters?: StringMap;
}

/** The request of NodeStageVolume. */
export interface NodeStageVolumeRequest {
  volume_id?: string;
  staging_target_path?: string;
  volume_capability?: VolumeCapability;
}

/** The request of NodeUnstageVolume. */
export interface NodeUnstageVolumeRequest {
  volume_id?: string;
  staging_target_path?: string;
}

/** The request of NodePublishVolume. */
export interface NodePublishVolumeRequest {
  volume_id?: string;
  staging_target_path?: string;
  target_path?: string;
  volume_capability?: VolumeCapability;
  readonly?: boolean;
}

/** The request of NodeUnpublishVolume. */
export interface NodeUnpublishVolumeRequest {
  volume_id?: string;
  target_path?: string;
}

/** The request of NodeGetVolumeStats. */
export interface NodeGetVolumeStatsRequest {
  volume_id?: string;
  volume_path?: string;
}

/** The request of NodeExpandVolume. */
export interface NodeExpandVolumeRequest {
  volume_id?: string;
  volume_path?: string;
  capacity_range?: CapacityRange;
  volume_capability?: VolumeCapability;
}

/** Used and free room in one unit. */
export interface VolumeUsage {
  available?: string;
  total?: string;
  used?: string;
  unit: 'BYTES' | 'INODES';
}
