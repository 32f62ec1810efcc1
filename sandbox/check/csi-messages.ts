/** What `check` sends and reads of package csi.v1. All that a driver answers may be missing. int64 travels as decimal text. */
import type {
  CapacityRange,
  StringMap,
  Topology,
  TopologyRequirement,
  VolumeCapability,
} from '../hostpath/messages.ts';

export type { CapacityRange, StringMap, Topology, VolumeCapability };

export interface ContentSource {
  snapshot?: { snapshot_id?: string };
  volume?: { volume_id?: string };
}

export interface Volume {
  volume_id?: string;
  capacity_bytes?: string;
  volume_context?: StringMap;
  content_source?: ContentSource;
  accessible_topology?: Topology[];
}

export interface Snapshot {
  snapshot_id?: string;
  source_volume_id?: string;
  size_bytes?: string;
  creation_time?: { seconds?: string; nanos?: number };
  ready_to_use?: boolean;
}

export interface CreateVolumeRequest {
  name: string;
  capacity_range?: CapacityRange;
  volume_capabilities: VolumeCapability[];
  parameters: StringMap;
  secrets: StringMap;
  volume_content_source?: ContentSource;
  accessibility_requirements?: TopologyRequirement;
}

interface Capability {
  rpc?: { type?: string | number };
}

/** The answer of each call that `check` makes. */
export interface Responses {
  GetPluginInfo: { name?: string; vendor_version?: string };
  GetPluginCapabilities: {
    capabilities?: { service?: { type?: string | number }; volume_expansion?: { type?: string | number } }[];
  };
  Probe: { ready?: { value?: boolean } };
  ControllerGetCapabilities: { capabilities?: Capability[] };
  NodeGetCapabilities: { capabilities?: Capability[] };
  NodeGetInfo: { node_id?: string; max_volumes_per_node?: string; accessible_topology?: Topology };
  CreateVolume: { volume?: Volume };
  DeleteVolume: object;
  ControllerPublishVolume: { publish_context?: StringMap };
  ControllerUnpublishVolume: object;
  ValidateVolumeCapabilities: { confirmed?: { volume_capabilities?: VolumeCapability[] }; message?: string };
  ListVolumes: { entries?: { volume?: Volume; status?: { published_node_ids?: string[] } }[]; next_token?: string };
  ControllerGetVolume: { volume?: Volume };
  ControllerModifyVolume: object;
  GetCapacity: { available_capacity?: string; maximum_volume_size?: { value?: string } };
  CreateSnapshot: { snapshot?: Snapshot };
  DeleteSnapshot: object;
  ListSnapshots: { entries?: { snapshot?: Snapshot }[]; next_token?: string };
  GetSnapshot: { snapshot?: Snapshot };
  ControllerExpandVolume: { capacity_bytes?: string; node_expansion_required?: boolean };
}

export type Method = keyof Responses;
