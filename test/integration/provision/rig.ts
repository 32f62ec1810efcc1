/** A `ProvisionController` between a scripted provisioner and a real HTTP API, with the objects of the cases. */
import { setImmediate } from 'node:timers/promises';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Informer } from '../../../src/kube/cache/informer.ts';
import { ExponentialLimiter, type RateLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { provisionInformers } from '../../../src/provision/cache/informers.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';
import { ProvisionController } from '../../../src/provision/provision-controller.ts';
import type { ProvisionControllerOptions } from '../../../src/provision/provision-controller-options.ts';
import { storageKeysOf } from '../../../src/provision/volume/storage-holders.ts';
import { ApiServer, type ApiServerOptions } from '../../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxObject } from '../../../sandbox/api/client.ts';
import type { FaultRule, InjectedFault } from '../../../sandbox/api/faults.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { Bulletin } from '../../support/bulletin.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { RecordedLimiter } from './recorded-limiter.ts';
import { RecordedMetrics } from './recorded-metrics.ts';
import { type OptionalMethods, ScriptedProvisioner } from './scripted-provisioner.ts';
import { Wire } from './wire.ts';

/** Our finalizer on volumes. */
export const F = 'external-provisioner.volume.kubernetes.io/finalizer';
export const pvProtection = 'kubernetes.io/pv-protection';
export const annotation = {
  provisioner: 'volume.kubernetes.io/storage-provisioner',
  betaProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  betaClass: 'volume.beta.kubernetes.io/storage-class',
  node: 'volume.kubernetes.io/selected-node',
  alphaNode: 'volume.alpha.kubernetes.io/selected-node',
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  migratedTo: 'pv.kubernetes.io/migrated-to',
} as const;

/** Resources as the in-process client names them. */
export const resource = {
  claims: { group: '', version: 'v1', plural: 'persistentvolumeclaims' },
  volumes: { group: '', version: 'v1', plural: 'persistentvolumes' },
  classes: { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' },
  events: { group: '', version: 'v1', plural: 'events' },
} as const;

export interface RigOptions {
  /** Options of the controller; the rig sets what is missing. */
  controller?: Partial<ProvisionControllerOptions>;
  /** Optional methods of the provisioner. */
  methods?: OptionalMethods;
  /** Back-off; default one hour doubling, which no test lives to see: a retry is only noted. */
  limiter?: RateLimiter;
  /** Time of the controller. Where it is a manual clock the caches still keep real time. Default: real time. */
  clock?: Clock;
  api?: ApiServerOptions;
  /** Whether caches that the rig makes, with a manual clock, know the storage of volumes. Default true. */
  indexed?: boolean;
}

/** A core/v1 event, as far as tests look at it. */
export interface SeenEvent {
  type: string;
  reason: string;
  message: string;
  count: number;
  object: string;
}

const hourMs = 3_600_000;
const maxBehindMs = 50;
const userAgent = 'provision-controller-test';

export class Rig implements AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  /** The API without HTTP, for what users and other controllers do. */
  readonly api: SandboxClient;
  readonly provisioner: ScriptedProvisioner;
  readonly limiter: RecordedLimiter;
  readonly metrics: RecordedMetrics;
  readonly log: LogLine[] = [];
  readonly wire: Wire;
  readonly controller: ProvisionController;
  readonly transport: Transport;
  readonly #bulletin = new Bulletin();
  /** Versions of the last changes, by plural. */
  readonly #versions = new Map<string, number>();
  readonly #stop = new AbortController();
  readonly #abort = new AbortController();
  readonly #endOfCaches = new AbortController();
  #running: Promise<void> | undefined;
  #sentinels = 0;

  private constructor(server: ApiServer, url: string, options: RigOptions) {
    const { notify } = this.#bulletin;
    const { clock = systemClock, controller = {} } = options;
    const logger = recordedLogger(this.log);
    this.server = server;
    this.url = url;
    this.api = server.client('test');
    for (const each of Object.values(resource)) {
      this.api.subscribe(each, ({ object }) => {
        this.#versions.set(each.plural, Number(object.metadata.resourceVersion));
        notify();
      });
    }
    this.wire = new Wire({ origin: url, onAnswer: notify });
    this.limiter = new RecordedLimiter(
      options.limiter ?? new ExponentialLimiter({ baseMs: hourMs, maxMs: 1000 * hourMs }),
      notify,
    );
    this.metrics = new RecordedMetrics(notify);
    this.provisioner = new ScriptedProvisioner({
      nowMs: () => clock.monotonicMs(),
      ...(options.methods && { methods: options.methods }),
    });
    this.provisioner.on('call', notify);
    this.transport = connect({ master: url, environment: {}, userAgent, logger });
    const { additionalProvisionerNames = [] } = controller;
    const isKnownProvisioner = (name: string): boolean => name === 'drv' || additionalProvisionerNames.includes(name);
    this.controller = new ProvisionController({
      provisionerName: 'drv',
      provisioner: this.provisioner,
      transport: this.transport,
      workers: 1,
      limiter: this.limiter,
      metrics: this.metrics,
      saveLimiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1000 }),
      clock,
      logger,
      freezeCache: true,
      ...(clock instanceof ManualClock && { informers: this.#ownInformers(isKnownProvisioner, options) }),
      ...controller,
    });
  }

  #informers: ReturnType<typeof provisionInformers> | undefined;

  /** Starts the API server; the controller starts with `start`, after the test has made its objects. */
  static async prepare(options: RigOptions = {}): Promise<Rig> {
    // what waits for a bookmark waits no longer than this
    const server = new ApiServer({ namespaces: ['default', 'ns'], bookmarkIntervalMs: 100, ...options.api });
    const { url } = await server.start();
    return new Rig(server, url, options);
  }

  #ownInformers(
    isKnownProvisioner: (name: string) => boolean,
    { indexed = true, controller: { provisioner = this.provisioner } = {} }: RigOptions,
  ): ReturnType<typeof provisionInformers> {
    this.#informers = provisionInformers({
      transport: this.transport,
      isKnownProvisioner,
      storageKeys: indexed ? storageKeysOf(provisioner) : undefined,
      clock: systemClock,
      logger: recordedLogger(this.log),
      freeze: true,
    });
    return this.#informers;
  }

  /** Runs the controller; resolves once it has looked at everything that was there. */
  async start(): Promise<void> {
    this.startOnly();
    await this.settle();
  }

  /** As `start`, without waiting for anything. */
  startOnly(): void {
    const run = this.controller.run({ stop: this.#stop.signal, abort: this.#abort.signal });
    const caches = Object.values(this.#informers ?? {}).map((informer: Informer<never>) =>
      informer.run(this.#endOfCaches.signal),
    );
    this.#running = run.finally(() => {
      this.#endOfCaches.abort(new Error('the controller has ended'));
      return Promise.all(caches);
    });
  }

  /** Stops the controller and waits for its end; events are all sent then. Safe to repeat. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the test stops the controller'));
    await this.#running;
  }

  /** Waits until the controller has ended by itself. @returns what it failed with. */
  async failure(): Promise<unknown> {
    const error: unknown = await this.#running?.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    this.#running = undefined;
    return error;
  }

  /** What the controller was given. */
  get signals(): { stop: AbortSignal; abort: AbortSignal } {
    return { stop: this.#stop.signal, abort: this.#abort.signal };
  }

  /** Aborts the stop signal and returns at once. */
  beginStop(): void {
    this.#stop.abort(new Error('the test stops the controller'));
  }

  /** Aborts the abort signal. */
  abort(): void {
    this.#abort.abort(new Error('the test aborts the controller'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.abort();
    await this.stop();
    this.wire[Symbol.dispose]();
    await this.transport[Symbol.asyncDispose]();
    await this.server.close();
  }

  /** Waits for a condition that something reported changes: calls, metrics, syncs, writes, answers. */
  until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return this.#bulletin.until(what, read);
  }

  /**
   * Waits until the controller has worked on all changes made so far: until it heard of a change of objects that are no
   * concern of it, and then of keys that stand for nothing, which its one worker of each kind takes. Waiting
   * claims take turns with that key: if several wait, the test must name what it waits for.
   */
  async settle(): Promise<void> {
    const name = `zz-sentinel-${++this.#sentinels}`; // last in lists, too
    const claim = this.api.create(resource.claims, claimObject(name, { annotations: {} }));
    this.addVolume(name, 'Available');
    const { uid = '' } = claim.metadata;
    const touching = setInterval(() => {
      this.touchClaim(name);
      this.touchVolume(name);
    }, 5);
    try {
      await this.until('both changes', () => this.limiter.syncs(uid).length > 0 && this.limiter.syncs(name).length > 0);
    } finally {
      clearInterval(touching);
    }
    const key = `flush-${name}`;
    this.controller.wakeClaim(key);
    await this.until('the queue of claims to run empty', () => this.limiter.syncs(key).length > 0);
    this.controller.wakeVolume(key);
    await this.until('the queue of volumes to run empty', () => this.limiter.syncs(key).length > 1);
  }

  /** Waits for the n-th end of a sync of a key (from 1). */
  async synced(key: string, n = 1): Promise<void> {
    await this.until(`sync ${n} of ${key}`, () => this.limiter.syncs(key).length >= n);
  }

  /** Waits until the caches have all changes made so far, but not for long: a test may hold a watch back. Only with a manual clock. */
  async cached(): Promise<void> {
    await setImmediate(); // the version of the last change is known then
    const untilMs = performance.now() + maxBehindMs;
    const isBehind = ([plural, informer]: [string, Informer<never>]): boolean =>
      Number(informer.version ?? 0) < (this.#versions.get(resource[plural as keyof typeof resource].plural) ?? 0);
    while (Object.entries(this.#informers ?? {}).some(isBehind) && performance.now() < untilMs) await setImmediate();
  }

  fault(rule: FaultRule): InjectedFault {
    return this.server.faults.add({ ...rule, match: { userAgent, ...rule.match } });
  }

  /** Refuses requests, by default all of this verb and resource. */
  refuse(
    verb: string,
    plural: string,
    { code = 500, reason = 'InternalError', message = 'boom', ...rest }: Partial<Refusal> = {},
  ): InjectedFault {
    return this.fault({
      match: { verb, resource: plural },
      action: { type: 'status', code, reason, message },
      ...rest,
    });
  }

  addClass(name = 'c1', fields: Partial<Omit<StorageClass, 'metadata'>> = {}): StorageClass {
    const object = { metadata: { name }, provisioner: 'drv', ...fields };
    return this.api.create(resource.classes, object) as unknown as StorageClass;
  }

  /** Claim `ns/a` of class `c1`, unless the sketch says otherwise. */
  addClaim(name = 'a', more: ClaimSketch = {}): PersistentVolumeClaim & { metadata: { uid: string } } {
    const { finalizers, ...sketch } = more;
    const created = this.api.create(resource.claims, claimObject(name, sketch));
    const claim = finalizers === undefined ? created : this.changeClaim(name, { finalizers });
    return claim as unknown as PersistentVolumeClaim & { metadata: { uid: string } };
  }

  class(name: string): StorageClass | undefined {
    return this.api.get(resource.classes, { name }) as unknown as StorageClass | undefined;
  }

  /** UID of a class as the controller sees it; only with a manual clock. */
  classInCache(name: string): string | undefined {
    return this.#informers?.classes.get(name)?.metadata.uid;
  }

  /** Deletes a class and creates one of its name. Resolves once the controller sees that; only with a manual clock. */
  async recreateClass(name: string, fields: Partial<Omit<StorageClass, 'metadata'>>): Promise<void> {
    const { uid } = this.class(name)?.metadata ?? {};
    this.api.delete(resource.classes, { name });
    this.addClass(name, fields);
    await this.until('the cache', () => ![undefined, uid].includes(this.classInCache(name)));
  }

  /** A claim as the controller sees it; only with a manual clock. */
  claimInCache(name: string): PersistentVolumeClaim | undefined {
    return this.#informers?.claims.get(`ns/${name}`);
  }

  claim(name = 'a'): PersistentVolumeClaim | undefined {
    const found = this.api.get(resource.claims, { namespace: 'ns', name });
    return found as unknown as PersistentVolumeClaim | undefined;
  }

  /** Changes metadata and spec fields of a claim. */
  changeClaim(name: string, metadata: object, spec: object = {}): SandboxObject {
    const claim = structuredClone(this.api.get(resource.claims, { namespace: 'ns', name }))!;
    Object.assign(claim.metadata, metadata);
    Object.assign(claim['spec'] as object, spec);
    return this.api.update(resource.claims, claim);
  }

  /** A change that concerns nobody but wakes the controller. */
  touchClaim(name = 'a', value = String(performance.now())): SandboxObject {
    return this.changeClaim(name, { labels: { touched: value } });
  }

  /** Deletes a claim for good: no finalizer holds it, and the controller sees nothing but the deletion. */
  deleteClaim(name = 'a'): void {
    this.api.delete(resource.claims, { namespace: 'ns', name });
    if (this.claim(name) !== undefined) throw new Error(`finalizers hold the claim ${name}`);
  }

  /** Volume with CSI driver `drv`, policy Delete, provisioned by `drv`, held by nothing, unless the sketch says otherwise. */
  addVolume(name: string, phase: string, sketch: VolumeSketch = {}): PersistentVolume {
    const { finalizers = [], annotations = { [annotation.provisionedBy]: 'drv' }, terminating, spec = {} } = sketch;
    const source = ['csi', 'nfs', 'azureDisk'].some((kind) => kind in spec)
      ? {}
      : { csi: { driver: 'drv', volumeHandle: `handle-${name}` } };
    const volume = structuredClone(
      this.api.create(resource.volumes, {
        metadata: { name, annotations, finalizers },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          storageClassName: 'c1',
          ...source,
          ...spec,
        },
      }),
    );
    volume['status'] = { phase };
    this.api.updateStatus(resource.volumes, volume);
    if (terminating === true) this.api.delete(resource.volumes, { name });
    this.setFinalizers(name, finalizers);
    return this.api.get(resource.volumes, { name }) as unknown as PersistentVolume;
  }

  /** The claim of a volume is gone. */
  releaseVolume(name: string): void {
    const volume = structuredClone(this.api.get(resource.volumes, { name }))!;
    this.api.updateStatus(resource.volumes, { ...volume, status: { phase: 'Released' } });
  }

  setFinalizers(name: string, finalizers: string[]): void {
    this.#changeVolume(name, { finalizers });
  }

  volume(name: string): PersistentVolume | undefined {
    return this.api.get(resource.volumes, { name }) as unknown as PersistentVolume | undefined;
  }

  /** A change of a volume that wakes the controller. */
  touchVolume(name: string): void {
    this.#changeVolume(name, { labels: { touched: String(performance.now()) } });
  }

  /** Adds annotations to a volume, or changes them. */
  annotateVolume(name: string, annotations: Record<string, string>): void {
    this.#changeVolume(name, { annotations: { ...this.volume(name)?.metadata.annotations, ...annotations } });
  }

  #changeVolume(name: string, metadata: Partial<SandboxObject['metadata']>): void {
    const volume = structuredClone(this.api.get(resource.volumes, { name }))!;
    Object.assign(volume.metadata, metadata);
    this.api.update(resource.volumes, volume);
  }

  /** Events that are stored now, in the order of their first occurrence. */
  get events(): SeenEvent[] {
    return this.api
      .list(resource.events)
      .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map((event) => {
        const { type, reason, message, count, involvedObject } = event as unknown as SeenEvent & {
          involvedObject: { namespace?: string; name: string };
        };
        const { namespace, name } = involvedObject;
        return { type, reason, message, count, object: namespace === undefined ? name : `${namespace}/${name}` };
      });
  }

  /** Reasons of the stored events, in the order in which they were last written. */
  get reasons(): string[] {
    return this.events.map(({ reason }) => reason);
  }

  /** Volumes on the server other than the rig's own. */
  get volumes(): PersistentVolume[] {
    return this.api
      .list(resource.volumes)
      .filter(({ metadata }) => !metadata.name.startsWith('zz-sentinel-')) as unknown as PersistentVolume[];
  }

  /** How often the log says that a volume could not be saved. */
  get unsavedLines(): number {
    return this.log.filter(({ message }) => message.startsWith('The volume could not be saved')).length;
  }

  /** Writes of the controller in short, events left out: `POST /api/v1/persistentvolumes`. */
  get writes(): string[] {
    return this.wire.writes.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`);
  }
}

interface Refusal {
  code: number;
  reason: string;
  message: string;
  times: number;
  after: number;
}

export interface ClaimSketch {
  annotations?: Record<string, string>;
  /** `null` leaves the field out. */
  storageClassName?: string | null;
  /** Replaces the list the server made; an empty one lets a deletion happen at once. */
  finalizers?: string[];
  spec?: object;
}

export interface VolumeSketch {
  /** Default none. */
  finalizers?: string[];
  annotations?: Record<string, string>;
  /** Was deleted by somebody already, and finalizers hold it. */
  terminating?: boolean;
  spec?: Record<string, unknown>;
}

function claimObject(name: string, sketch: ClaimSketch = {}): SandboxObject {
  const { annotations = { [annotation.provisioner]: 'drv' }, storageClassName = 'c1', spec = {} } = sketch;
  return {
    metadata: { name, namespace: 'ns', annotations },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...(storageClassName !== null && { storageClassName }),
      ...spec,
    },
  };
}
