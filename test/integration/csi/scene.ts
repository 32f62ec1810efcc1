/** A driver by script, an API server and the whole program between them. */
import type { Clock } from '../../../src/base/clock.ts';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import type { Environment } from '../../../src/cli/config.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import type { ApiServer, ApiServerOptions } from '../../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxMeta, SandboxObject } from '../../../sandbox/api/client.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Bulletin } from '../../support/bulletin.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from './stored-cluster.ts';

export const csi = loadCsi();
export const driverName = 'd.example.com';

const core = (plural: string) => ({ group: '', version: 'v1', plural });
export const resource = {
  claims: core('persistentvolumeclaims'),
  volumes: core('persistentvolumes'),
  secrets: core('secrets'),
  nodes: core('nodes'),
  csiNodes: { group: 'storage.k8s.io', version: 'v1', plural: 'csinodes' },
  events: core('events'),
} as const;

/** A core/v1 event, as far as tests look at it. */
export interface SeenEvent {
  type: string;
  reason: string;
  message: string;
  count: number;
}

export interface SceneOptions {
  /** Default `d.example.com`. */
  driverName?: string;
  plugin?: string[];
  controller?: string[];
  /** Further flags of the program; retries come after 50 ms unless they say otherwise. */
  flags?: readonly string[];
  /** Environment variables of the program. Default: none. */
  environment?: Environment;
  /** Parameters of class `sc`. */
  parameters?: Record<string, string>;
  /** Further fields of class `sc`; what stands there wins. */
  storageClass?: object;
  /** Objects besides class `sc`. */
  objects?: SandboxObject[];
  /** Another socket than the driver's own, such as that of a driver without any grpc library. */
  socketPath?: string;
  /** What the API server serves. */
  served?: Pick<ApiServerOptions, 'versions' | 'disabledResources'>;
  /** Prepares the API server before the program starts. */
  onServer?: (server: ApiServer) => void;
  /** Of the program. Default: real time. */
  clock?: Clock;
  /** Writes the driver's script before the program starts. */
  script?: (driver: RecordingDriver) => void;
}

/** A running scene; dispose it. */
export class Scene implements AsyncDisposable {
  readonly driver: RecordingDriver;
  readonly cluster: StoredCluster;
  /** The API without HTTP, for what users and other controllers do. */
  readonly api: SandboxClient;
  readonly program: Program;
  readonly #driverName: string;
  readonly #bulletin = new Bulletin();
  readonly #opened: AsyncDisposableStack;

  private constructor(
    opened: AsyncDisposableStack,
    parts: { driver: RecordingDriver; driverName: string; cluster: StoredCluster; program: Program },
  ) {
    this.#opened = opened;
    this.#driverName = parts.driverName;
    this.driver = parts.driver;
    this.cluster = parts.cluster;
    this.program = parts.program;
    this.api = parts.cluster.server.client('test');
    for (const each of Object.values(resource)) this.api.subscribe(each, this.#bulletin.notify);
  }

  static async start(options: SceneOptions = {}): Promise<Scene> {
    await using opened = new AsyncDisposableStack();
    const {
      driverName: name = driverName,
      plugin,
      controller,
      parameters = {},
      storageClass: fields = {},
      objects = [],
      flags = [],
    } = options;
    const driver = opened.use(
      await RecordingDriver.start({
        csi,
        name,
        ...(plugin === undefined ? {} : { plugin }),
        ...(controller === undefined ? {} : { controller }),
      }),
    );
    options.script?.(driver);
    const storageClass = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'sc' },
      provisioner: name,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      parameters,
      ...fields,
    };
    const cluster = opened.use(await StoredCluster.start([storageClass, ...objects], options.served));
    options.onServer?.(cluster.server);
    const program = opened.use(
      new Program({
        socketPath: options.socketPath ?? driver.socketPath,
        apiUrl: cluster.url,
        flags: ['--retry-interval-start=50ms', ...flags],
        ...(options.environment && { environment: options.environment }),
        ...(options.clock && { clock: options.clock }),
      }),
    );
    return new Scene(opened.move(), { driver, driverName: name, cluster, program });
  }

  /** Resolves with what `read` finds; looked at when something changes in the cluster, and every few milliseconds. */
  until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return this.#bulletin.until(what, read);
  }

  /** A claim of class `sc` for this driver, 1Gi unless the spec says otherwise. */
  addClaim(name = 'c1', spec: object = {}, metadata: Partial<SandboxMeta> = {}): SandboxObject {
    return this.api.create(resource.claims, {
      metadata: {
        name,
        namespace: 'ns1',
        ...metadata,
        annotations: { 'volume.kubernetes.io/storage-provisioner': this.#driverName, ...metadata.annotations },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'sc',
        ...spec,
      },
    });
  }

  /** Deletes a claim for good, as the control plane does with one that no pod uses. */
  removeClaim(name = 'c1'): void {
    const claim = structuredClone(this.api.get(resource.claims, { namespace: 'ns1', name }));
    if (claim === undefined) throw new Error(`no claim ${name}`);
    this.api.update(resource.claims, { ...claim, metadata: { ...claim.metadata, finalizers: [] } });
    this.api.delete(resource.claims, { namespace: 'ns1', name });
  }

  /** The volume of a claim, once it is saved. */
  async volume(claimName = 'c1'): Promise<SavedVolume> {
    return await this.until(`the volume of ${claimName}`, () => this.volumeNow(claimName));
  }

  volumeNow(claimName = 'c1'): SavedVolume | undefined {
    const volumes = this.api.list(resource.volumes) as unknown as SavedVolume[];
    return volumes.find(({ spec }) => spec.claimRef.name === claimName);
  }

  /** Resolves once the program has let go of a released volume. */
  async volumeDeleted(claimName = 'c1'): Promise<void> {
    await this.until(`the end of the volume of ${claimName}`, () => {
      const { deletionTimestamp, finalizers } = this.volumeNow(claimName)?.metadata ?? { deletionTimestamp: 'gone' };
      // the control plane, which this cluster does not have, takes the last finalizer off
      return (
        deletionTimestamp !== undefined && (finalizers ?? []).every((each) => each === 'kubernetes.io/pv-protection')
      );
    });
  }

  /** Resolves once a driver was called. */
  async called(driver: RecordingDriver, method: string): Promise<void> {
    await this.until(`a call of ${method}`, () => driver.callsOf(method).length > 0);
  }

  /** What the control plane does with a volume whose claim was deleted. */
  release({ metadata: { name } }: SavedVolume): void {
    const volume = structuredClone(this.api.get(resource.volumes, { name }));
    if (volume === undefined) throw new Error(`no volume ${name}`);
    this.api.updateStatus(resource.volumes, { ...volume, status: { phase: 'Released' } });
  }

  /** Events about an object, oldest first. */
  events(name = 'c1'): SeenEvent[] {
    const about = (event: SandboxObject): unknown => (event['involvedObject'] as { name?: string }).name;
    const events = this.api.list(resource.events).filter((event) => about(event) === name);
    return (events as unknown as SeenEvent[]).map(({ type, reason, message, count }) => ({
      type,
      reason,
      message,
      count,
    }));
  }

  /** The first event of a reason about an object, once it is there. */
  async event(reason: string, name = 'c1'): Promise<SeenEvent> {
    return await this.until(`an event ${reason} about ${name}`, () =>
      this.events(name).find((event) => event.reason === reason),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/** The parts of a PersistentVolume that tests look at. */
export interface SavedVolume {
  metadata: SandboxMeta;
  spec: {
    claimRef: { name: string };
    capacity: { storage: string };
    csi: { volumeHandle: string; fsType?: string; volumeAttributes: Record<string, string> };
    nodeAffinity?: PersistentVolume['spec']['nodeAffinity'];
  };
}
