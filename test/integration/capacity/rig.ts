/** A `CapacityController` between a recording driver on a real socket and a real HTTP API, with the cases' objects. */
import assert from 'node:assert/strict';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Logger } from '../../../src/base/logger.ts';
import { createRegistry } from '../../../src/base/metrics.ts';
import { CapacityController } from '../../../src/capacity/capacity-controller.ts';
import { capacityInformer } from '../../../src/capacity/capacity-informer.ts';
import { capacityMetrics } from '../../../src/capacity/capacity-metrics.ts';
import { ClusterSegments } from '../../../src/capacity/cluster-segments.ts';
import { CurrentOwner } from '../../../src/capacity/current-owner.ts';
import { managedBy } from '../../../src/capacity/storage-capacity.ts';
import { NodeSegment } from '../../../src/capacity/node-segment.ts';
import type { SegmentSource } from '../../../src/capacity/segment.ts';
import { storageCapacities } from '../../../src/capacity/storage-capacity.ts';
import { CsiConnection } from '../../../src/csi/connection.ts';
import { csiCalls } from '../../../src/csi/csi-calls.ts';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { nodeInformers } from '../../../src/csi/topology/topology-nodes.ts';
import { Credentials } from '../../../src/kube/credentials/credentials.ts';
import { Informer } from '../../../src/kube/cache/informer.ts';
import { loadKubeConfig } from '../../../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { KubeObject, OwnerReference } from '../../../src/kube/kube-object.ts';
import { noReflectorMetrics } from '../../support/no-metrics.ts';
import { TokenBucket } from '../../../src/kube/client/token-bucket.ts';
import { Transport } from '../../../src/kube/client/transport.ts';
import type { WorkQueueMetrics } from '../../../src/kube/queue/work-queue.ts';
import { type StorageClass, storageClasses } from '../../../src/provision/objects.ts';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import type { ResourceRef, SandboxMeta, SandboxObject } from '../../../sandbox/api/client.ts';
import type { LoggedRequest } from '../../../sandbox/api/request-log.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { RecordingDriver, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { ApiScene, resource } from '../../support/api-scene.ts';

export const csi = loadCsi();
export const zone = 'ex.com/zone';
export const Gi = 1_073_741_824;
export const Mi = 1_048_576;
/** The owner of the cases. */
export const owner: OwnerReference = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  name: 'own',
  uid: 'u1',
  controller: true,
};

export interface RigOptions {
  /** Default: `own`; null: none. */
  owner?: OwnerReference | null;
  /** Finds the owner again. Default: it never changes. */
  findOwner?: () => Promise<OwnerReference>;
  forImmediateBinding?: boolean;
  /** Default: an hour, which no test lives to see. */
  pollIntervalMs?: number;
  threads?: number;
  /** Deadline of a call to the driver, in real milliseconds. */
  timeoutMs?: number;
  /** Node deployment: the name of the node, and its labels from NodeGetInfo. */
  node?: { name: string; labels: Record<string, string> };
  rateLimit?: { qps: number; burst: number };
  /** Makes objects before anything runs. */
  prepare?: (rig: Rig) => void;
  /** A cluster that is there already, such as that of another rig, which then disposes it. */
  server?: { api: ApiServer; url: string };
  /** Only prepares; `run` starts. */
  waits?: boolean;
}

/** A capacity object, as far as cases look at it. */
export interface SeenCapacity {
  class: string;
  topology: Record<string, string>;
  capacity: string | undefined;
  maximumVolumeSize?: string;
}

export interface StoredCapacity extends SandboxObject {
  storageClassName: string;
  nodeTopology?: { matchLabels?: Record<string, string> };
  capacity?: string;
  maximumVolumeSize?: string;
}

/** An informer, whatever it holds. */
type AnyInformer = Pick<Informer<KubeObject>, 'run' | 'get' | 'size'>;

/** Counts what goes into a queue and what comes out. */
class QueueWatch implements WorkQueueMetrics {
  added_ = 0;
  worked_ = 0;
  retried_ = 0;
  readonly #notify: () => void;

  constructor(notify: () => void) {
    this.#notify = notify;
  }

  get isIdle(): boolean {
    return this.added_ === this.worked_;
  }

  added(): void {
    this.added_ += 1;
    this.#notify();
  }

  retried(): void {
    this.retried_ += 1;
  }

  waited(): void {
    this.#notify();
  }

  worked(): void {
    this.worked_ += 1;
    this.#notify();
  }
}

/** Everything one case needs; dispose it. */
export class Rig extends ApiScene {
  readonly driver: RecordingDriver;
  /** Time of the controller and its rate limit. The caches and calls keep real time. */
  readonly clock: ManualClock;
  readonly controller: CapacityController;
  readonly log: LogLine[] = [];
  readonly logger: Logger = recordedLogger(this.log);
  readonly queue: QueueWatch;
  readonly registry = createRegistry();
  readonly #topologyQueue: QueueWatch;
  readonly #stop = new AbortController();
  readonly #informers: { informer: AnyInformer; ref: ResourceRef; selected: (object: SandboxObject) => boolean }[];
  readonly #classes: Informer<StorageClass>;
  readonly #segments: SegmentSource;
  readonly #userAgent: string;
  #background: Promise<unknown> = Promise.resolve();
  #mark = 0;

  private constructor(
    parts: { server: ApiServer; url: string; driver: RecordingDriver; connection: CsiConnection },
    opened: AsyncDisposableStack,
    options: RigOptions,
  ) {
    super({ server: parts.server, url: parts.url, opened });
    const { notify } = this.bulletin;
    this.driver = parts.driver;
    this.clock = new ManualClock();
    const { logger } = this;
    const clock: Clock = systemClock;
    const load = () => loadKubeConfig({ master: parts.url, environment: {} });
    const credentials = new Credentials({ load, clock, logger });
    this.#userAgent = `capacity-rig-${Math.random()}`;
    const { rateLimit } = options;
    const transport = opened.use(
      new Transport({
        credentials,
        userAgent: this.#userAgent,
        clock: this.clock,
        logger,
        rateLimit: rateLimit && new TokenBucket({ ...rateLimit, clock: this.clock }),
      }),
    );
    const cacheTransport = opened.use(new Transport({ credentials, userAgent: this.#userAgent, clock, logger }));
    const frame = {
      resource: storageCapacities,
      namespace: 'ns',
      driverName: 'drv',
      managedBy: managedBy(options.node?.name),
      owner: options.owner === undefined ? owner : (options.owner ?? undefined),
    };
    const common = { transport: cacheTransport, clock, logger };
    const capacities = capacityInformer({ ...common, frame, freeze: true });
    const classes = new Informer<StorageClass>({ ...common, resource: storageClasses, freeze: true });
    this.#classes = classes;
    this.queue = new QueueWatch(notify);
    this.#topologyQueue = new QueueWatch(notify);
    const nodes =
      options.node === undefined
        ? nodeInformers({ ...common, driverName: 'drv', metrics: noReflectorMetrics })
        : undefined;
    this.#segments =
      nodes === undefined
        ? new NodeSegment({
            labels: () => options.node?.labels ?? {},
            onChange: () => ({ [Symbol.dispose]: () => undefined }),
          })
        : new ClusterSegments({ nodes, driverName: 'drv', queueMetrics: this.#topologyQueue, clock, logger });
    const all = (): boolean => true;
    this.#informers = [
      { informer: classes, ref: resource.classes, selected: all },
      {
        informer: capacities,
        ref: resource.capacities,
        selected: ({ metadata: { namespace, labels } }) =>
          namespace === 'ns' &&
          labels?.['csi.storage.k8s.io/drivername'] === 'drv' &&
          labels['csi.storage.k8s.io/managed-by'] === frame.managedBy,
      },
    ];
    if (nodes !== undefined) {
      this.#informers.push(
        { informer: nodes.nodes, ref: resource.nodes, selected: all },
        { informer: nodes.csiNodes, ref: resource.csiNodes, selected: all },
      );
    }
    const calls = csiCalls(csi, {
      connection: parts.connection,
      timeoutMs: options.timeoutMs ?? 20_000,
      clock,
      logger,
      onCall: notify,
    });
    const { findOwner: find } = options;
    this.controller = new CapacityController({
      frame,
      owner: find && frame.owner && new CurrentOwner({ found: frame.owner, find, clock: this.clock, logger }),
      client: new KubeClient({ transport, fieldManager: 'test' }),
      driver: calls,
      classes,
      capacities,
      segments: this.#segments,
      forImmediateBinding: options.forImmediateBinding ?? false,
      workers: options.threads ?? 1,
      pollIntervalMs: options.pollIntervalMs ?? 3_600_000,
      retryStartMs: 1000,
      retryMaxMs: 300_000,
      queueMetrics: this.queue,
      metrics: capacityMetrics(this.registry),
      clock: this.clock,
      logger,
    });
  }

  static async start(options: RigOptions = {}): Promise<Rig> {
    await using opened = new AsyncDisposableStack();
    let { server } = options;
    if (server === undefined) {
      const api = opened.use(new ApiServer({ namespaces: ['ns', 'elsewhere'] }));
      server = { api, url: (await api.start()).url };
    }
    const driver = opened.use(await RecordingDriver.start({ name: 'drv' }));
    driver.always('GetCapacity', { available_capacity: String(Gi) });
    const quiet = recordedLogger([]);
    const connection = opened.use(new CsiConnection({ address: driver.socketPath, logger: quiet, clock: systemClock }));
    await connection.connect();
    const inner = new AsyncDisposableStack();
    const rig = new Rig({ server: server.api, url: server.url, driver, connection }, inner, options);
    inner.use(opened.move()); // last of all: what the rig itself opened goes first
    try {
      options.prepare?.(rig);
      if (options.waits !== true) {
        rig.run();
        await rig.quiet();
      }
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs the caches and the controller. */
  run(): void {
    const { signal } = this.#stop;
    this.#background = Promise.all([
      ...this.#informers.map(({ informer }) => informer.run(signal)),
      this.#segments.run(signal),
      this.controller.run({ stop: signal, abort: signal }),
    ]);
  }

  /** Resolves once the controller has seen everything in the cluster and has nothing to do but wait for its time. */
  async quiet(): Promise<void> {
    await this.until('the controller to come to rest', () => this.#hasStarted() && this.#isQuiet());
    // What the last write led to is in the caches only now; then there must still be nothing to do.
    await this.until('the controller to stay at rest', () => this.#isQuiet());
  }

  #hasStarted(): boolean {
    return this.log.some(({ message }) => message === 'Started Capacity Controller');
  }

  #isQuiet(): boolean {
    if (!this.queue.isIdle || !this.#topologyQueue.isIdle) return false;
    return this.#informers.every(({ informer, ref, selected }) => {
      const there = this.api.list(ref).filter(selected);
      const isSeen = ({ metadata: { namespace, name, resourceVersion } }: SandboxObject): boolean => {
        const cached = informer.get(namespace === undefined ? name : `${namespace}/${name}`);
        return cached?.metadata.resourceVersion === resourceVersion;
      };
      return there.length === informer.size && there.every(isSeen);
    });
  }

  /** Class of `drv` that waits for its first consumer, unless told otherwise. */
  addClass(name = 'sc', fields: Record<string, unknown> = {}): SandboxObject {
    return this.api.create(resource.classes, {
      metadata: { name },
      provisioner: 'drv',
      volumeBindingMode: 'WaitForFirstConsumer',
      ...fields,
    });
  }

  /** As the controller's cache shows it. */
  cachedClass(name = 'sc'): StorageClass | undefined {
    return this.#classes.get(name);
  }

  removeClass(name = 'sc'): void {
    this.api.delete(resource.classes, { name });
  }

  addNode(name: string, labels: Record<string, string>): void {
    this.api.create(resource.nodes, { metadata: { name, labels } });
  }

  setLabels(name: string, labels: Record<string, string>): void {
    const node = structuredClone(this.api.get(resource.nodes, { name }));
    assert.ok(node);
    this.api.update(resource.nodes, { ...node, metadata: { ...node.metadata, labels } });
  }

  /** Registers the driver on a node; null: the node has no driver. */
  addCsiNode(name: string, topologyKeys: string[] | null = [zone]): void {
    this.api.create(resource.csiNodes, { metadata: { name }, spec: { drivers: drivers(topologyKeys) } });
  }

  setCsiNode(name: string, topologyKeys: string[] | null): void {
    const csiNode = structuredClone(this.api.get(resource.csiNodes, { name }));
    assert.ok(csiNode);
    this.api.update(resource.csiNodes, { ...csiNode, spec: { drivers: drivers(topologyKeys) } });
  }

  /** A node in a zone with the driver on it. */
  addZone(name = 'n1', value = 'z1'): void {
    this.addNode(name, { [zone]: value });
    this.addCsiNode(name);
  }

  /** Class `sc` and node `n1` in zone `z1`. */
  base(): void {
    this.addClass();
    this.addZone();
  }

  /** An object as our kind writes them, with these differences. */
  addCapacity(fields: Record<string, unknown> = {}, metadata: Partial<SandboxMeta> = {}): StoredCapacity {
    return this.api.create(resource.capacities, {
      metadata: {
        generateName: 'csisc-',
        namespace: 'ns',
        labels: {
          'csi.storage.k8s.io/drivername': 'drv',
          'csi.storage.k8s.io/managed-by': 'external-provisioner',
        },
        ownerReferences: [owner],
        ...metadata,
      } as SandboxMeta,
      storageClassName: 'sc',
      nodeTopology: { matchLabels: { [zone]: 'z1' } },
      capacity: '1Gi',
      ...fields,
    }) as StoredCapacity;
  }

  change(object: StoredCapacity, fields: Record<string, unknown>, metadata: Partial<SandboxMeta> = {}): void {
    const stored = structuredClone(this.api.get(resource.capacities, { namespace: 'ns', name: object.metadata.name }));
    assert.ok(stored);
    this.api.update(resource.capacities, { ...stored, ...fields, metadata: { ...stored.metadata, ...metadata } });
  }

  removeCapacity({ metadata: { name } }: StoredCapacity): void {
    this.api.delete(resource.capacities, { namespace: 'ns', name });
  }

  /** All objects in the namespace. */
  get stored(): StoredCapacity[] {
    return this.api.list(resource.capacities, { namespace: 'ns' }) as StoredCapacity[];
  }

  /** The only one. */
  get only(): StoredCapacity {
    const [object, ...more] = this.stored;
    assert.ok(object !== undefined && more.length === 0, `${more.length + 1} objects, or none`);
    return object;
  }

  get seen(): SeenCapacity[] {
    const seen = this.stored.map(({ storageClassName, nodeTopology, capacity, maximumVolumeSize }) => ({
      class: storageClassName,
      topology: nodeTopology?.matchLabels ?? {},
      capacity,
      ...(maximumVolumeSize !== undefined && { maximumVolumeSize }),
    }));
    return seen.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }

  /** Calls of GetCapacity since the last `forget`. */
  get calls(): RecordedCall[] {
    return this.driver.callsOf('GetCapacity').slice(this.#mark);
  }

  /** From now on calls and writes count from zero. */
  forget(): void {
    this.#mark = this.driver.callsOf('GetCapacity').length;
    this.server.requestLog.clear();
  }

  /** Our writes of capacity objects since the last `forget`. */
  get writes(): LoggedRequest[] {
    return this.requests.filter(({ verb }) => ['create', 'update', 'patch', 'delete'].includes(verb));
  }

  /** Our requests for capacity objects since the last `forget`. */
  get requests(): LoggedRequest[] {
    return this.server.requestLog
      .entries({ resource: 'csistoragecapacities' })
      .filter(({ userAgent }) => userAgent === this.#userAgent);
  }

  /** Goal, current and obsolete, as the metrics page shows them. */
  async counts(): Promise<string> {
    const names = ['desired_goal', 'desired_current', 'obsolete'];
    const values = names.map(async (name) => {
      const metric = await this.registry.getSingleMetric(`csistoragecapacities_${name}`)?.get();
      return metric?.values[0]?.value;
    });
    return (await Promise.all(values)).join('/');
  }

  warnings(): LogLine[] {
    return this.log.filter(({ level }) => level === 'warn' || level === 'error');
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('the test stops the controller'));
    await this.#background;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await super[Symbol.asyncDispose]();
  }
}

/** Labels that a GetCapacity asked about. */
export function segmentsOf(request: Record<string, unknown>): Record<string, string> {
  const { segments } = request['accessible_topology'] as { segments: Record<string, string> };
  return { ...segments };
}

function drivers(topologyKeys: string[] | null): object[] {
  const other = { name: 'other', nodeID: 'x', topologyKeys: ['other.example.com/rack'] };
  return topologyKeys === null ? [other] : [other, { name: 'drv', nodeID: 'x', topologyKeys }];
}
