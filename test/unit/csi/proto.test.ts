import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import protobuf from 'protobufjs';
import { csiDescriptor } from '../../../src/csi/csi-proto-source.ts';
import { loadCsi } from '../../../src/csi/csi-proto.ts';

/**
 * Package csi.v1 as CSI 1.13 has it, written down apart from the proto file. A field reads
 * `number name: type`, with ` in oneof` where it belongs to one; `!` marks csi_secret and `~` alpha_field.
 */
const fields: Record<string, string> = {
  GetPluginInfoRequest: '',
  GetPluginInfoResponse: '1 name: string; 2 vendor_version: string; 3 manifest: map',
  GetPluginCapabilitiesRequest: '',
  GetPluginCapabilitiesResponse: '1 capabilities: repeated PluginCapability',
  PluginCapability:
    '1 service: PluginCapability.Service in type; 2 volume_expansion: PluginCapability.VolumeExpansion in type',
  'PluginCapability.Service': '1 type: PluginCapability.Service.Type',
  'PluginCapability.VolumeExpansion': '1 type: PluginCapability.VolumeExpansion.Type',
  ProbeRequest: '',
  ProbeResponse: '1 ready: google.protobuf.BoolValue',
  CreateVolumeRequest:
    '1 name: string; 2 capacity_range: CapacityRange; 3 volume_capabilities: repeated VolumeCapability; 4 parameters: map; 5 secrets!: map; 6 volume_content_source: VolumeContentSource; 7 accessibility_requirements: TopologyRequirement; 8 mutable_parameters: map',
  VolumeContentSource:
    '1 snapshot: VolumeContentSource.SnapshotSource in type; 2 volume: VolumeContentSource.VolumeSource in type',
  'VolumeContentSource.SnapshotSource': '1 snapshot_id: string',
  'VolumeContentSource.VolumeSource': '1 volume_id: string',
  CreateVolumeResponse: '1 volume: Volume',
  VolumeCapability:
    '1 block: VolumeCapability.BlockVolume in access_type; 2 mount: VolumeCapability.MountVolume in access_type; 3 access_mode: VolumeCapability.AccessMode',
  'VolumeCapability.BlockVolume': '',
  'VolumeCapability.MountVolume': '1 fs_type: string; 2 mount_flags: repeated string; 3 volume_mount_group: string',
  'VolumeCapability.AccessMode': '1 mode: VolumeCapability.AccessMode.Mode',
  CapacityRange: '1 required_bytes: int64; 2 limit_bytes: int64',
  Volume:
    '1 capacity_bytes: int64; 2 volume_id: string; 3 volume_context: map; 4 content_source: VolumeContentSource; 5 accessible_topology: repeated Topology',
  TopologyRequirement: '1 requisite: repeated Topology; 2 preferred: repeated Topology',
  Topology: '1 segments: map',
  DeleteVolumeRequest: '1 volume_id: string; 2 secrets!: map',
  DeleteVolumeResponse: '',
  ControllerPublishVolumeRequest:
    '1 volume_id: string; 2 node_id: string; 3 volume_capability: VolumeCapability; 4 readonly: bool; 5 secrets!: map; 6 volume_context: map',
  ControllerPublishVolumeResponse: '1 publish_context: map',
  ControllerUnpublishVolumeRequest: '1 volume_id: string; 2 node_id: string; 3 secrets!: map',
  ControllerUnpublishVolumeResponse: '',
  ValidateVolumeCapabilitiesRequest:
    '1 volume_id: string; 2 volume_context: map; 3 volume_capabilities: repeated VolumeCapability; 4 parameters: map; 5 secrets!: map; 6 mutable_parameters: map',
  ValidateVolumeCapabilitiesResponse: '1 confirmed: ValidateVolumeCapabilitiesResponse.Confirmed; 2 message: string',
  'ValidateVolumeCapabilitiesResponse.Confirmed':
    '1 volume_context: map; 2 volume_capabilities: repeated VolumeCapability; 3 parameters: map; 4 mutable_parameters: map',
  ListVolumesRequest: '1 max_entries: int32; 2 starting_token: string',
  ListVolumesResponse: '1 entries: repeated ListVolumesResponse.Entry; 2 next_token: string',
  'ListVolumesResponse.VolumeStatus': '1 published_node_ids: repeated string',
  'ListVolumesResponse.Entry': '1 volume: Volume; 2 status: ListVolumesResponse.VolumeStatus',
  ControllerGetVolumeRequest: '1 volume_id: string',
  ControllerGetVolumeResponse: '1 volume: Volume; 2 status: ControllerGetVolumeResponse.VolumeStatus',
  'ControllerGetVolumeResponse.VolumeStatus': '1 published_node_ids: repeated string',
  ControllerModifyVolumeRequest: '1 volume_id: string; 2 secrets!: map; 3 mutable_parameters: map',
  ControllerModifyVolumeResponse: '',
  GetCapacityRequest:
    '1 volume_capabilities: repeated VolumeCapability; 2 parameters: map; 3 accessible_topology: Topology',
  GetCapacityResponse:
    '1 available_capacity: int64; 2 maximum_volume_size: google.protobuf.Int64Value; 3 minimum_volume_size~: google.protobuf.Int64Value',
  ControllerGetCapabilitiesRequest: '',
  ControllerGetCapabilitiesResponse: '1 capabilities: repeated ControllerServiceCapability',
  ControllerServiceCapability: '1 rpc: ControllerServiceCapability.RPC in type',
  'ControllerServiceCapability.RPC': '1 type: ControllerServiceCapability.RPC.Type',
  CreateSnapshotRequest:
    '1 source_volume_id: string; 2 name: string; 3 secrets!: map; 4 parameters: map; 5 accessibility_requirements~: TopologyRequirement',
  CreateSnapshotResponse: '1 snapshot: Snapshot',
  Snapshot:
    '1 size_bytes: int64; 2 snapshot_id: string; 3 source_volume_id: string; 4 creation_time: google.protobuf.Timestamp; 5 ready_to_use: bool; 6 group_snapshot_id: string; 7 accessible_topology~: repeated Topology',
  DeleteSnapshotRequest: '1 snapshot_id: string; 2 secrets!: map',
  DeleteSnapshotResponse: '',
  ListSnapshotsRequest:
    '1 max_entries: int32; 2 starting_token: string; 3 source_volume_id: string; 4 snapshot_id: string; 5 secrets!: map',
  ListSnapshotsResponse: '1 entries: repeated ListSnapshotsResponse.Entry; 2 next_token: string',
  'ListSnapshotsResponse.Entry': '1 snapshot: Snapshot',
  GetSnapshotRequest: '1 snapshot_id: string; 2 secrets!: map',
  GetSnapshotResponse: '1 snapshot: Snapshot',
  ControllerExpandVolumeRequest:
    '1 volume_id: string; 2 capacity_range: CapacityRange; 3 secrets!: map; 4 volume_capability: VolumeCapability',
  ControllerExpandVolumeResponse: '1 capacity_bytes: int64; 2 node_expansion_required: bool',
  NodeStageVolumeRequest:
    '1 volume_id: string; 2 publish_context: map; 3 staging_target_path: string; 4 volume_capability: VolumeCapability; 5 secrets!: map; 6 volume_context: map',
  NodeStageVolumeResponse: '',
  NodeUnstageVolumeRequest: '1 volume_id: string; 2 staging_target_path: string',
  NodeUnstageVolumeResponse: '',
  NodePublishVolumeRequest:
    '1 volume_id: string; 2 publish_context: map; 3 staging_target_path: string; 4 target_path: string; 5 volume_capability: VolumeCapability; 6 readonly: bool; 7 secrets!: map; 8 volume_context: map',
  NodePublishVolumeResponse: '',
  NodeUnpublishVolumeRequest: '1 volume_id: string; 2 target_path: string',
  NodeUnpublishVolumeResponse: '',
  NodeGetVolumeStatsRequest: '1 volume_id: string; 2 volume_path: string; 3 staging_target_path: string',
  NodeGetVolumeStatsResponse: '1 usage: repeated VolumeUsage',
  VolumeUsage: '1 available: int64; 2 total: int64; 3 used: int64; 4 unit: VolumeUsage.Unit',
  ControllerListVolumeHealthRequest: '1 max_entries: int32; 2 starting_token: string; 3 secrets!: map',
  ControllerListVolumeHealthResponse: '1 entries: repeated VolumeHealth; 2 next_token: string',
  VolumeHealth: '1 volume_id: string; 2 health_statuses: repeated VolumeHealth.VolumeHealthEntry',
  'VolumeHealth.VolumeHealthEntry': '1 status: VolumeHealthErrorType; 2 reason: string; 3 message: string',
  ControllerGetVolumeHealthRequest: '1 volume_id: string; 2 secrets!: map',
  ControllerGetVolumeHealthResponse: '1 volume_health: VolumeHealth',
  NodeGetVolumeHealthRequest: '1 volume_id: string; 2 volume_publish_path: string; 3 staging_target_path: string',
  NodeGetVolumeHealthResponse: '1 volume_health: VolumeHealth',
  NodeGetStorageHealthRequest: '1 secrets!: map',
  NodeGetStorageHealthResponse: '1 backend_health: repeated NodeGetStorageHealthResponse.StorageBackendHealth',
  'NodeGetStorageHealthResponse.StorageBackendHealth':
    '1 status: StorageHealthErrorType; 2 reason: string; 3 message: string; 4 volume_capability: VolumeCapability',
  NodeGetCapabilitiesRequest: '',
  NodeGetCapabilitiesResponse: '1 capabilities: repeated NodeServiceCapability',
  NodeServiceCapability: '1 rpc: NodeServiceCapability.RPC in type',
  'NodeServiceCapability.RPC': '1 type: NodeServiceCapability.RPC.Type',
  NodeGetInfoRequest: '',
  NodeGetInfoResponse: '1 node_id: string; 2 max_volumes_per_node: int64; 3 accessible_topology: Topology',
  NodeExpandVolumeRequest:
    '1 volume_id: string; 2 volume_path: string; 3 capacity_range: CapacityRange; 4 staging_target_path: string; 5 volume_capability: VolumeCapability; 6 secrets!~: map',
  NodeExpandVolumeResponse: '1 capacity_bytes: int64',
  GroupControllerGetCapabilitiesRequest: '',
  GroupControllerGetCapabilitiesResponse: '1 capabilities: repeated GroupControllerServiceCapability',
  GroupControllerServiceCapability: '1 rpc: GroupControllerServiceCapability.RPC in type',
  'GroupControllerServiceCapability.RPC': '1 type: GroupControllerServiceCapability.RPC.Type',
  CreateVolumeGroupSnapshotRequest:
    '1 name: string; 2 source_volume_ids: repeated string; 3 secrets!: map; 4 parameters: map',
  CreateVolumeGroupSnapshotResponse: '1 group_snapshot: VolumeGroupSnapshot',
  VolumeGroupSnapshot:
    '1 group_snapshot_id: string; 2 snapshots: repeated Snapshot; 3 creation_time: google.protobuf.Timestamp; 4 ready_to_use: bool',
  DeleteVolumeGroupSnapshotRequest: '1 group_snapshot_id: string; 2 snapshot_ids: repeated string; 3 secrets!: map',
  DeleteVolumeGroupSnapshotResponse: '',
  GetVolumeGroupSnapshotRequest: '1 group_snapshot_id: string; 2 snapshot_ids: repeated string; 3 secrets!: map',
  GetVolumeGroupSnapshotResponse: '1 group_snapshot: VolumeGroupSnapshot',
  BlockMetadata: '1 byte_offset: int64; 2 size_bytes: int64',
  GetMetadataAllocatedRequest: '1 snapshot_id: string; 2 starting_offset: int64; 3 max_results: int32; 4 secrets!: map',
  GetMetadataAllocatedResponse:
    '1 block_metadata_type: BlockMetadataType; 2 volume_capacity_bytes: int64; 3 block_metadata: repeated BlockMetadata',
  GetMetadataDeltaRequest:
    '1 base_snapshot_id: string; 2 target_snapshot_id: string; 3 starting_offset: int64; 4 max_results: int32; 5 secrets!: map',
  GetMetadataDeltaResponse:
    '1 block_metadata_type: BlockMetadataType; 2 volume_capacity_bytes: int64; 3 block_metadata: repeated BlockMetadata',
};
const enums = {
  'PluginCapability.Service.Type':
    'UNKNOWN CONTROLLER_SERVICE VOLUME_ACCESSIBILITY_CONSTRAINTS GROUP_CONTROLLER_SERVICE SNAPSHOT_METADATA_SERVICE SNAPSHOT_ACCESSIBILITY_CONSTRAINTS',
  'PluginCapability.VolumeExpansion.Type': 'UNKNOWN ONLINE OFFLINE',
  'VolumeCapability.AccessMode.Mode':
    'UNKNOWN SINGLE_NODE_WRITER SINGLE_NODE_READER_ONLY MULTI_NODE_READER_ONLY MULTI_NODE_SINGLE_WRITER MULTI_NODE_MULTI_WRITER SINGLE_NODE_SINGLE_WRITER SINGLE_NODE_MULTI_WRITER',
  'ControllerServiceCapability.RPC.Type':
    'UNKNOWN CREATE_DELETE_VOLUME PUBLISH_UNPUBLISH_VOLUME LIST_VOLUMES GET_CAPACITY CREATE_DELETE_SNAPSHOT LIST_SNAPSHOTS CLONE_VOLUME PUBLISH_READONLY EXPAND_VOLUME LIST_VOLUMES_PUBLISHED_NODES - GET_VOLUME SINGLE_NODE_MULTI_WRITER MODIFY_VOLUME GET_SNAPSHOT GET_VOLUME_HEALTH LIST_VOLUME_HEALTH',
  'VolumeUsage.Unit': 'UNKNOWN BYTES INODES',
  'NodeServiceCapability.RPC.Type':
    'UNKNOWN STAGE_UNSTAGE_VOLUME GET_VOLUME_STATS EXPAND_VOLUME - SINGLE_NODE_MULTI_WRITER VOLUME_MOUNT_GROUP GET_VOLUME_HEALTH GET_STORAGE_HEALTH',
  'GroupControllerServiceCapability.RPC.Type': 'UNKNOWN CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT',
  VolumeHealthErrorType: 'UNKNOWN_VOLUME_HEALTH_TYPE DEGRADED INACCESSIBLE DATA_LOSS',
  StorageHealthErrorType: 'UNKNOWN_STORAGE_HEALTH_ERROR_TYPE STORAGE_DEGRADED STORAGE_UNREACHABLE',
  BlockMetadataType: 'UNKNOWN FIXED_LENGTH VARIABLE_LENGTH',
};
const methods = {
  Identity: 'GetPluginInfo GetPluginCapabilities Probe',
  Controller:
    'CreateVolume DeleteVolume ControllerPublishVolume ControllerUnpublishVolume ValidateVolumeCapabilities ListVolumes ' +
    'ControllerListVolumeHealth ControllerGetVolumeHealth GetCapacity ControllerGetCapabilities CreateSnapshot DeleteSnapshot ListSnapshots GetSnapshot ' +
    'ControllerExpandVolume ControllerGetVolume ControllerModifyVolume',
  GroupController:
    'GroupControllerGetCapabilities CreateVolumeGroupSnapshot DeleteVolumeGroupSnapshot GetVolumeGroupSnapshot',
  SnapshotMetadata: 'GetMetadataAllocated GetMetadataDelta',
  Node:
    'NodeStageVolume NodeUnstageVolume NodePublishVolume NodeUnpublishVolume NodeGetVolumeStats ' +
    'NodeGetVolumeHealth NodeGetStorageHealth NodeExpandVolume NodeGetCapabilities NodeGetInfo',
};

const alphaMessages = [
  'ControllerGetVolumeHealthRequest',
  'ControllerGetVolumeHealthResponse',
  'ControllerGetVolumeRequest',
  'ControllerGetVolumeResponse',
  'ControllerListVolumeHealthRequest',
  'ControllerListVolumeHealthResponse',
  'GetSnapshotRequest',
  'GetSnapshotResponse',
  'NodeGetStorageHealthRequest',
  'NodeGetStorageHealthResponse',
  'NodeGetVolumeHealthRequest',
  'NodeGetVolumeHealthResponse',
  'VolumeHealth',
];

const root = protobuf.Root.fromJSON(csiDescriptor()).resolveAll();

/** Everything of one kind below csi.v1, by its name relative to the package. */
function below<T extends protobuf.ReflectionObject>(kind: new (...args: never[]) => T): Map<string, T> {
  const found = new Map<string, T>();
  const visit = (namespace: protobuf.NamespaceBase): void => {
    for (const nested of namespace.nestedArray) {
      if (nested instanceof kind) found.set(relative(nested), nested);
      if (nested instanceof protobuf.Namespace) visit(nested);
    }
  };
  visit(root.lookup('csi.v1') as protobuf.Namespace);
  return found;
}

function relative(object: protobuf.ReflectionObject): string {
  return object.fullName.replace(/^\.csi\.v1\./, '').replace(/^\./, '');
}

function describeField(field: protobuf.Field): string {
  const marks =
    (field.options?.['(csi_secret)'] === true ? '!' : '') + (field.options?.['(alpha_field)'] === true ? '~' : '');
  const type = field.resolvedType === null ? field.type : relative(field.resolvedType);
  if (field instanceof protobuf.MapField) {
    assert.deepEqual([field.keyType, field.type], ['string', 'string']);
    return `${field.id} ${field.name}${marks}: map`;
  }
  const oneof = field.partOf === null ? '' : ` in ${field.partOf.name}`;
  return `${field.id} ${field.name}${marks}: ${field.repeated ? 'repeated ' : ''}${type}${oneof}`;
}

describe('proto/csi.proto', () => {
  const messages = below(protobuf.Type);

  test('has exactly the messages of CSI 1.13', () => {
    assert.equal(messages.size, 104);
    assert.deepEqual([...messages.keys()].sort(), Object.keys(fields).sort());
  });

  for (const [name, want] of Object.entries(fields)) {
    test(`${name} has its fields`, () => {
      const message = messages.get(name);
      assert.ok(message);
      assert.equal(message.fieldsArray.map(describeField).join('; '), want);
    });
  }

  test('has exactly the enums of CSI 1.13, numbered from 0, without those that are reserved', () => {
    const found = [...below(protobuf.Enum)].map(([name, { values }]) => {
      const names = new Map(Object.entries(values).map(([each, number]) => [number, each]));
      const numbers = Array.from({ length: Math.max(...names.keys()) + 1 }, (_, number) => names.get(number) ?? '-');
      return [name, numbers.join(' ')];
    });
    assert.equal(found.length, 10);
    assert.deepEqual(Object.fromEntries(found), enums);
  });

  test('has the five services with their methods', () => {
    const services = below(protobuf.Service);
    const found = [...services].map(([name, service]) => [
      name,
      service.methodsArray.map((method) => method.name).join(' '),
    ]);
    assert.deepEqual(Object.fromEntries(found), methods);
    for (const method of [...services.values()].flatMap((service) => service.methodsArray)) {
      assert.equal(method.requestType, `${method.name}Request`);
      assert.equal(method.responseType, `${method.name}Response`);
      assert.equal(method.responseStream ?? false, method.name.startsWith('GetMetadata'), method.name);
      assert.equal(method.requestStream ?? false, false);
      const alpha = ['GetSnapshot', 'ControllerGetVolume'].includes(method.name) || method.name.endsWith('Health');
      assert.equal(method.options?.['(alpha_method)'] === true, alpha, method.name);
    }
  });

  test('marks the alpha messages', () => {
    const found = [...messages].filter(([, message]) => message.options?.['(alpha_message)'] === true);
    assert.deepEqual(found.map(([name]) => name).sort(), alphaMessages);
  });

  test('numbers the options', () => {
    const found = root.nestedArray
      .concat((root.lookup('csi.v1') as protobuf.Namespace).nestedArray)
      .filter((object) => object instanceof protobuf.Field)
      .map((field) => `${field.extend ?? ''} ${field.name} ${field.id} ${field.type}`);
    assert.deepEqual(found.sort(), [
      'google.protobuf.EnumOptions alpha_enum 1060 bool',
      'google.protobuf.EnumValueOptions alpha_enum_value 1060 bool',
      'google.protobuf.FieldOptions alpha_field 1060 bool',
      'google.protobuf.FieldOptions csi_secret 1059 bool',
      'google.protobuf.MessageOptions alpha_message 1060 bool',
      'google.protobuf.MethodOptions alpha_method 1060 bool',
      'google.protobuf.ServiceOptions alpha_service 1060 bool',
    ]);
  });
});

describe('loadCsi', () => {
  const csi = loadCsi();

  test('knows every field named secrets as secret, and no other', () => {
    const want = [...below(protobuf.Type)]
      .filter(([, message]) => 'secrets' in message.fields)
      .map(([name]) => [name, new Set(['secrets'])] as const);
    assert.equal(want.length, 22);
    assert.deepEqual(csi.secretFields, new Map(want));
  });

  test('gives each service that is called, its methods at their wire paths', () => {
    assert.equal(csi.v1.Controller.CreateVolume.path, '/csi.v1.Controller/CreateVolume');
    assert.equal(csi.v1.Identity.Probe.path, '/csi.v1.Identity/Probe');
    assert.equal(csi.v1.Node.NodeGetInfo.path, '/csi.v1.Node/NodeGetInfo');
  });

  test('writes the bytes that other implementations read', () => {
    const bytes = csi.v1.Controller.CreateVolume.request.encode({
      name: 'a',
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: { fs_type: 'xfs' }, access_mode: { mode: 'MULTI_NODE_MULTI_WRITER' } }],
    });
    assert.equal(bytes.toString('hex'), '0a01611206088080808014' + '1a0b' + '12050a03786673' + '1a020805');
  });

  const { CreateVolume, DeleteVolume, GetCapacity, ListVolumes } = csi.v1.Controller;
  for (const { name, bytes, want } of [
    {
      name: 'empty texts, numbers, enums, lists and maps',
      bytes: CreateVolume.request.encode({
        name: '',
        capacity_range: { required_bytes: '0', limit_bytes: 0 },
        volume_capabilities: [
          { mount: { fs_type: '', mount_flags: [], volume_mount_group: '' }, access_mode: { mode: 'UNKNOWN' } },
        ],
        parameters: {},
        secrets: {},
        mutable_parameters: {},
      }),
      want: '1200' + '1a04' + '1200' + '1a00', // the messages stay
    },
    {
      name: 'empty fields of sources and topologies',
      bytes: CreateVolume.request.encode({
        volume_content_source: { snapshot: { snapshot_id: '' } },
        accessibility_requirements: { requisite: [{ segments: {} }], preferred: [] },
      }),
      want: '3202' + '0a00' + '3a02' + '0a00',
    },
    { name: 'an empty id', bytes: DeleteVolume.request.encode({ volume_id: '', secrets: {} }), want: '' },
    { name: 'an empty token', bytes: ListVolumes.request.encode({ max_entries: 0, starting_token: '' }), want: '' },
    {
      name: 'empty fields beside an empty entry of a list and the halves of a map entry, which are written',
      bytes: GetCapacity.request.encode({
        volume_capabilities: [{ mount: { mount_flags: ['', 'a'] } }],
        parameters: { a: '' },
      }),
      want: '0a07' + '1205' + '1200' + '120161' + '1205' + '0a0161' + '1200',
    },
  ]) {
    test(`does not write what other implementations leave out: ${name}`, () => {
      assert.equal(bytes.toString('hex'), want);
    });
  }

  test('reads int64 as text, enums by name, oneofs with their member, and leaves absent fields out', () => {
    const { request } = csi.v1.Controller.CreateVolume;
    const message = request.decode(Buffer.from('120a08ffffffffffffffff7f' + '1a061200' + '1a020801', 'hex'));
    assert.deepEqual(message, {
      capacity_range: { required_bytes: '9223372036854775807' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' }, access_type: 'mount' }],
    });
  });
});
