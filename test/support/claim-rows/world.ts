/** The cluster of a row: both levels arrange it alike. */
import assert from 'node:assert/strict';
import type { Fault } from '../driver-process.ts';
import { kinds } from './kinds.ts';
import type { ObjectApi } from './object-api.ts';
import type {
  ClaimOptions,
  ClassFields,
  Kind,
  KubeObject,
  NewObject,
  ObjectName,
  ProvisionerFlags,
  RecordedEvent,
  World,
} from './row.ts';

export interface WorldOptions {
  api: ObjectApi;
  level: World['level'];
  namespace: string;
  driver: string;
  fault: (faults: readonly Partial<Fault>[]) => Promise<void>;
  startProvisioner: (driver: string, flags: ProvisionerFlags) => Promise<void>;
  eventually: World['eventually'];
}

export class RowWorld implements World {
  readonly level: World['level'];
  readonly namespace: string;
  readonly driver: string;
  readonly eventually: World['eventually'];
  readonly #api: ObjectApi;
  readonly #fault: WorldOptions['fault'];
  readonly #startProvisioner: WorldOptions['startProvisioner'];

  constructor(options: WorldOptions) {
    this.level = options.level;
    this.namespace = options.namespace;
    this.driver = options.driver;
    this.eventually = options.eventually;
    this.#api = options.api;
    this.#fault = options.fault;
    this.#startProvisioner = options.startProvisioner;
  }

  name(part?: string): string {
    return part === undefined ? this.namespace : `${this.namespace}-${part}`;
  }

  async add(kind: Kind, object: NewObject): Promise<KubeObject> {
    const { namespaced } = kinds[kind];
    const name = object.metadata.name ?? this.name();
    const namespace = namespaced ? (object.metadata.namespace ?? this.namespace) : undefined;
    const metadata = { ...object.metadata, name, ...(namespace !== undefined && { namespace }) };
    return await this.#api.create(kind, { ...object, metadata });
  }

  async patch(object: ObjectName, change: object): Promise<void> {
    await this.#api.patch(this.#whole(object), change);
  }

  async read(object: ObjectName): Promise<KubeObject | undefined> {
    return await this.#api.read(this.#whole(object));
  }

  async remove(object: ObjectName & { graceful?: boolean }): Promise<void> {
    await this.#api.remove(this.#whole(object), object.graceful);
  }

  async place(pod: string, node: string): Promise<void> {
    await this.#api.bindPod({ namespace: this.namespace, name: pod }, node);
  }

  async addClass(fields: ClassFields = {}): Promise<KubeObject> {
    const parameters = { case: this.namespace, ...fields.parameters };
    return await this.add('class', {
      provisioner: this.driver,
      ...fields,
      parameters,
      metadata: fields.metadata ?? {},
    });
  }

  async addClaim(spec: object = {}, { status, name = 'c', ...metadata }: ClaimOptions = {}): Promise<KubeObject> {
    return await this.add('claim', {
      metadata: { name, ...metadata },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: this.name(),
        ...spec,
      },
      ...(status !== undefined && { status: { ...status } }),
    });
  }

  async addVolume(
    spec: object = {},
    { status, ...metadata }: Partial<KubeObject['metadata']> & { status?: object } = {},
  ): Promise<KubeObject> {
    const name = metadata.name ?? this.name('volume');
    return await this.add('volume', {
      metadata: { ...metadata, name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: this.name(),
        csi: { driver: this.driver, volumeHandle: name },
        ...spec,
      },
      ...(status !== undefined && { status: { ...status } }),
    });
  }

  async addPod(
    spec: object = {},
    { name = 'p', claim = 'c', status }: { name?: string; claim?: string; status?: object } = {},
  ): Promise<KubeObject> {
    const object = {
      metadata: { name },
      spec: {
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
        ...spec,
      },
      ...(status !== undefined && { status: { ...status } }),
    };
    // the service account of a new namespace appears a moment after it; until then Pods are refused
    return await this.eventually(() => this.add('pod', object));
  }

  async addNode({
    name = this.name('node'),
    labels = {},
    driver = this.driver,
  }: { name?: string; labels?: Record<string, string>; driver?: string | null } = {}): Promise<KubeObject> {
    const room = { cpu: '4', memory: '8Gi', pods: '110' };
    const node = await this.add('node', {
      metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
      status: { allocatable: room, capacity: room, conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid ?? '' };
    const drivers = driver === null ? [] : [{ name: driver, nodeID: name, topologyKeys: Object.keys(labels) }];
    await this.add('csiNode', { metadata: { name, ownerReferences: [owner] }, spec: { drivers } });
    return node;
  }

  async addEvent(about: ObjectName, event: RecordedEvent): Promise<void> {
    const { reason, message, component = `${this.driver}_pod-1`, msAgo = 0, count = 1 } = event;
    const whole = this.#whole(about);
    const object = await this.read(about);
    const time = new Date(Date.now() - msAgo).toISOString().replace(/\.\d+Z/, 'Z');
    const { kind, apiVersion } = kinds[about.kind];
    await this.add('event', {
      metadata: { name: this.name(`e${++this.#events}`), namespace: whole.namespace ?? 'default' },
      involvedObject: {
        kind,
        apiVersion,
        name: about.name,
        ...(whole.namespace !== undefined && { namespace: whole.namespace }),
        ...(object?.metadata.uid !== undefined && { uid: object.metadata.uid }),
      },
      type: event.type ?? (reason.includes('Fail') ? 'Warning' : 'Normal'),
      source: { component },
      ...{ reason, message, count, firstTimestamp: time, lastTimestamp: time },
    });
  }
  #events = 0;

  get volume(): string {
    assert.notEqual(this.#volume, '', 'no claim was bound');
    return this.#volume;
  }
  #volume = '';

  async handedOver(claim = 'c'): Promise<void> {
    const key = 'volume.kubernetes.io/storage-provisioner';
    if (this.level === 'recorded') {
      await this.patch({ kind: 'claim', name: claim }, { metadata: { annotations: { [key]: this.driver } } });
      return;
    }
    await this.eventually(async () => {
      const { annotations } = (await this.#existing({ kind: 'claim', name: claim })).metadata;
      assert.ok(annotations?.[key] !== undefined, `claim ${claim} is not handed over`);
    });
  }

  async bound(claim = 'c'): Promise<string> {
    const object = { kind: 'claim', name: claim } as const;
    if (this.level === 'recorded') await this.#bind(claim);
    this.#volume = await this.eventually(async () => {
      const { spec, status } = await this.#existing(object);
      assert.equal(status?.['phase'], 'Bound', `claim ${claim}`);
      return String(spec?.['volumeName']);
    });
    return this.#volume;
  }

  async #bind(claim: string): Promise<void> {
    const { metadata, spec = {} } = await this.#existing({ kind: 'claim', name: claim });
    const name = `pvc-${metadata.uid ?? ''}`;
    const storage = (spec['resources'] as { requests: { storage: string } }).requests.storage;
    const policy = (await this.read({ kind: 'class', name: this.name() }))?.['reclaimPolicy'] ?? 'Delete';
    await this.addVolume(
      {
        capacity: { storage },
        persistentVolumeReclaimPolicy: policy,
        claimRef: { kind: 'PersistentVolumeClaim', namespace: this.namespace, name: claim, uid: metadata.uid },
      },
      {
        name,
        annotations: { 'pv.kubernetes.io/provisioned-by': this.driver },
        finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'],
        status: { phase: 'Bound' },
      },
    );
    await this.patch(
      { kind: 'claim', name: claim },
      { spec: { volumeName: name }, status: { phase: 'Bound', capacity: { storage } } },
    );
  }

  async placed(pod = 'p'): Promise<void> {
    const object = { kind: 'pod', name: pod } as const;
    if (this.level === 'recorded') {
      const { spec } = await this.#existing(object);
      const { 'kubernetes.io/hostname': node } = spec?.['nodeSelector'] as Record<string, string>;
      await this.place(pod, node ?? '');
    }
    await this.eventually(async () => {
      assert.ok((await this.#existing(object)).spec?.['nodeName'] !== undefined, `Pod ${pod} has no node`);
    });
  }

  async #existing(object: ObjectName): Promise<KubeObject> {
    const found = await this.read(object);
    assert.ok(found !== undefined, `there is no ${object.kind} ${object.name}`);
    return found;
  }

  async fault(...faults: Partial<Fault>[]): Promise<void> {
    await this.#fault(faults);
  }

  async startProvisioner(flags: ProvisionerFlags = {}): Promise<string> {
    const driver = `${this.name('driver')}.example.com`;
    await this.#startProvisioner(driver, flags);
    return driver;
  }

  #whole({ kind, name, namespace }: ObjectName): ObjectName {
    return nameOf(kind, name, kinds[kind].namespaced ? (namespace ?? this.namespace) : undefined);
  }
}

function nameOf(kind: Kind, name: string, namespace: string | undefined): ObjectName {
  return { kind, name, ...(namespace !== undefined && { namespace }) };
}
