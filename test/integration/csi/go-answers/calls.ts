/** Whole attempts to make and to delete a volume, against a driver on a real socket and an API server that both record. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { silentLogger } from '../../../../src/base/logger.ts';
import { CsiProvisioner } from '../../../../src/csi/csi-provisioner.ts';
import { driverCapabilities } from '../../../../src/csi/driver-info.ts';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { Topology } from '../../../../src/csi/topology/topology.ts';
import type { CsiNode, TopologyNode } from '../../../../src/csi/topology/topology-nodes.ts';
import { volumeName } from '../../../../src/csi/create/validate-claim.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { Store } from '../../../../src/kube/cache/store.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  ReferenceGrant,
  StorageClass,
} from '../../../../src/provision/objects.ts';
import { IgnoredError, type ProvisionOptions, ProvisionError } from '../../../../src/provision/provisioner.ts';
import { Attempts } from '../../../support/attempts.ts';
import type { Rig } from '../../../support/csi-rig.ts';
import { DriverFailure, type RecordedCall } from '../../../support/fakes/recording-driver.ts';

/** Flags, and what the driver reports. */
export interface Settings {
  DriverName: string;
  Prefix: string;
  UUIDLength: number;
  DefaultFSType: string;
  Identity: string;
  ExtraCreateMetadata: boolean;
  ReadOnly: boolean;
  PreventConversion: boolean;
  Strict: boolean;
  Immediate: boolean;
  Plugin: string[];
  Controller: string[];
  CrossNamespace: boolean;
  VAC: boolean;
}

type Secret = KubeObject & { data: Record<string, string> };

export interface ProvisionCase {
  Settings: Settings;
  Claim: PersistentVolumeClaim;
  Class: StorageClass;
  SelectedNode: string;
  Nodes: TopologyNode[];
  CSINodes: CsiNode[];
  Secrets: Secret[];
  Claims?: PersistentVolumeClaim[];
  Volumes?: PersistentVolume[];
  VACs: KubeObject[];
  Grants?: ReferenceGrant[];
  Snapshots?: KubeObject[];
  Contents?: KubeObject[];
  Response: {
    NoVolume: boolean;
    VolumeId: string;
    Capacity: string;
    Context?: Record<string, string>;
    Topology?: Record<string, string>[];
    ContentSource: string;
  };
  /** How many calls of DeleteVolume fail, from the first one. */
  DeleteFails: number;
  RpcCode?: status;
  RpcMessage?: string;
}

export interface DeleteCase {
  Settings: Settings;
  Volume: PersistentVolume;
  Classes: StorageClass[];
  Secrets: Secret[];
  DeleteFails: number;
}

export type Nodes = Pick<ProvisionCase, 'Nodes' | 'CSINodes'>;

export const states = {
  finished: 'Finished',
  'in-background': 'Background',
  'no-change': 'NoChange',
  reschedule: 'Reschedule',
} as const;

const context = { signal: new AbortController().signal };

/** The attempt's requests to the driver, its volume or error, and its state. */
export async function provision(rig: Rig, given: ProvisionCase): Promise<object> {
  using stored = new StoredObjects(rig);
  stored.put('/api/v1', 'secrets', given.Secrets);
  stored.put('/api/v1', 'persistentvolumeclaims', given.Claims);
  stored.put('/api/v1', 'persistentvolumes', given.Volumes);
  stored.put('/apis/snapshot.storage.k8s.io/v1', 'volumesnapshots', given.Snapshots);
  stored.put('/apis/snapshot.storage.k8s.io/v1', 'volumesnapshotcontents', given.Contents);
  stored.put('/apis/storage.k8s.io/v1', 'volumeattributesclasses', given.VACs);
  answerAs(rig, given);
  const provisioner = provisionerOf(rig, given.Settings, {
    claims: storeOf(given.Claims),
    grants: storeOf(given.Grants),
    nodes: given,
  });
  const outcome = await new Attempts(provisioner).make(optionsOf(given), context).then(
    ({ metadata, spec }) => ({ pv: { metadata, spec }, state: 'Finished' }),
    (error: unknown) => failureOf(error),
  );
  return { ...outcome, requests: requestsOf(rig) };
}

/** The attempt's requests to the driver, and its error. */
export async function deletion(rig: Rig, given: DeleteCase): Promise<object> {
  using stored = new StoredObjects(rig);
  stored.put('/api/v1', 'secrets', given.Secrets);
  failDeletions(rig, given.DeleteFails);
  const provisioner = provisionerOf(rig, given.Settings, { classes: storeOf(given.Classes) });
  const error = await provisioner.delete(given.Volume, context).then(
    () => '',
    (failure: unknown) => (failure as Error).message,
  );
  return { done: true, error, requests: requestsOf(rig) };
}

/** A store of the objects. */
export function storeOf<T extends KubeObject>(objects: readonly T[] = []): Store<T> {
  const store = new Store<T>({ logger: silentLogger, freeze: true });
  for (const object of objects) store.set(object);
  return store;
}

/** The computation of topology for a cluster of these nodes. */
export function topologyOf(
  { DriverName, Strict, Immediate }: Pick<Settings, 'DriverName' | 'Strict' | 'Immediate'>,
  { Nodes, CSINodes }: Nodes,
): Topology {
  return new Topology({
    driverName: DriverName,
    nodes: { nodes: storeOf(Nodes), csiNodes: storeOf(CSINodes) },
    strict: Strict,
    immediate: Immediate,
    logger: silentLogger,
  });
}

function provisionerOf(
  rig: Rig,
  settings: Settings,
  objects: {
    claims?: Store<PersistentVolumeClaim>;
    classes?: Store<StorageClass>;
    grants?: Store<ReferenceGrant>;
    nodes?: Nodes;
  },
): CsiProvisioner {
  const { claims = storeOf(), classes = storeOf(), grants = storeOf(), nodes } = objects;
  return new CsiProvisioner({
    ...rig.settings,
    driverName: settings.DriverName,
    identity: settings.Identity,
    capabilities: () => driverCapabilities(settings.Plugin, settings.Controller),
    claims,
    classes,
    referenceGrants: grants,
    volumeNamePrefix: settings.Prefix,
    volumeNameUuidLength: settings.UUIDLength,
    defaultFsType: settings.DefaultFSType,
    extraCreateMetadata: settings.ExtraCreateMetadata,
    controllerPublishReadOnly: settings.ReadOnly,
    preventVolumeModeConversion: settings.PreventConversion,
    gates: { crossNamespaceVolumeDataSource: settings.CrossNamespace, volumeAttributesClass: settings.VAC },
    topology: nodes && topologyOf(settings, nodes),
    migration: driverMigration(settings.DriverName),
  });
}

function optionsOf({ Settings, Claim, Class, SelectedNode }: ProvisionCase): ProvisionOptions {
  const { Prefix, UUIDLength } = Settings;
  const common = { claim: Claim, storageClass: Class, selectedNodeName: SelectedNode };
  try {
    return { ...common, volumeName: volumeName(Prefix, Claim.metadata.uid, UUIDLength) };
  } catch {
    return { ...common, volumeName: 'pvc-unnamed' }; // the attempt itself fails on it
  }
}

function failureOf(error: unknown): object {
  if (error instanceof IgnoredError) return { error: error.message, ignored: true, state: 'Finished' };
  assert.ok(error instanceof ProvisionError, String(error));
  return { error: error.message, state: states[error.state] };
}

/** What the driver answers from now on; earlier calls are forgotten. */
function answerAs(rig: Rig, given: ProvisionCase): void {
  const { Response, RpcCode, RpcMessage = '' } = given;
  const failure = RpcCode === undefined ? undefined : new DriverFailure(RpcCode, RpcMessage);
  failDeletions(rig, given.DeleteFails);
  rig.driver.always('CreateVolume', failure ?? (Response.NoVolume ? {} : { volume: volumeOf(Response) }));
}

function volumeOf({
  VolumeId,
  Capacity,
  Context,
  Topology: places = [],
  ContentSource,
}: ProvisionCase['Response']): object {
  const contentSources: Record<string, object> = {
    snapshot: { snapshot: { snapshot_id: 'x' } },
    volume: { volume: { volume_id: 'x' } },
    empty: {},
  };
  return {
    volume_id: VolumeId,
    capacity_bytes: Capacity,
    ...(Context && { volume_context: Context }),
    accessible_topology: places.map((segments) => ({ segments })),
    ...(ContentSource !== '' && { content_source: contentSources[ContentSource] }),
  };
}

function failDeletions(rig: Rig, count: number): void {
  rig.driver.calls.length = 0;
  let calls = 0;
  rig.driver.always('DeleteVolume', () => {
    calls += 1;
    if (calls <= count) throw new DriverFailure(status.INTERNAL, 'cannot delete');
    return {};
  });
}

/** What the driver was asked, in the words of the files. */
function requestsOf({ driver }: Rig): object[] {
  return driver.calls.map(({ method, request }: RecordedCall) => {
    if (method === 'DeleteVolume') return { delete: request['volume_id'], secrets: request['secrets'] };
    assert.equal(method, 'CreateVolume');
    return createRequest(request as unknown as CreateRequest);
  });
}

interface CreateRequest {
  name: string;
  capacity_range: { required_bytes?: string; limit_bytes?: string };
  volume_capabilities?: {
    access_mode: { mode: string };
    mount?: { fs_type: string; mount_flags: string[]; volume_mount_group: string };
    block?: object;
  }[];
  parameters: object;
  secrets: object;
  mutable_parameters: object;
  volume_content_source?: { volume?: { volume_id?: string }; snapshot?: { snapshot_id?: string } };
  accessibility_requirements?: Record<'requisite' | 'preferred', { segments: object }[]>;
}

function createRequest(request: CreateRequest): object {
  const { volume_content_source: source, accessibility_requirements: places } = request;
  return {
    name: request.name,
    required_bytes: request.capacity_range.required_bytes ?? '0',
    limit: request.capacity_range.limit_bytes ?? '0',
    caps: (request.volume_capabilities ?? []).map(({ access_mode: { mode }, mount, block }) => ({
      mode,
      ...(mount && { mount: { fs: mount.fs_type, flags: mount.mount_flags, group: mount.volume_mount_group } }),
      ...(block && { block: true }),
    })),
    params: request.parameters,
    mutable: request.mutable_parameters,
    secrets: request.secrets,
    ...(source?.volume && { source: `volume:${source.volume.volume_id ?? ''}` }),
    ...(source?.snapshot && { source: `snapshot:${source.snapshot.snapshot_id ?? ''}` }),
    ...(places && { topology: segmentsOf(places) }),
  };
}

/** Segments of both lists. */
export function segmentsOf({
  requisite = [],
  preferred = [],
}: {
  requisite?: readonly { segments?: object | null }[] | null;
  preferred?: readonly { segments?: object | null }[] | null;
}): object {
  const list = (topologies: typeof requisite): unknown[] => (topologies ?? []).map(({ segments }) => segments ?? {});
  return { requisite: list(requisite), preferred: list(preferred) };
}

/** Objects that the API server has for one case. */
class StoredObjects implements Disposable {
  readonly #rig: Rig;
  readonly #paths: string[] = [];

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  put(api: string, plural: string, objects: readonly KubeObject[] = []): void {
    for (const object of objects) {
      const { namespace, name } = object.metadata;
      const folder = namespace === undefined ? api : `${api}/namespaces/${encodeURIComponent(namespace)}`;
      const path = `${folder}/${plural}/${encodeURIComponent(name)}`;
      this.#rig.api.put(path, object);
      this.#paths.push(path);
    }
  }

  [Symbol.dispose](): void {
    for (const path of this.#paths) this.#rig.api.remove(path);
  }
}
