import { appendFileSync, mkdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { kubeconfigText } from '../../sandbox/kubeconfig.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { Informer } from '../../src/kube/cache/informer.ts';
import { connect } from '../../src/kube/client/connect.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { Transport } from '../../src/kube/client/transport.ts';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from '../../src/provision/objects.ts';
import { type Admin, connectAdmin, loadKubeconfig } from './admin.ts';
import { type ApiOrigin, ApiProxy } from './api-proxy.ts';
import type { Cluster, ClusterOptions } from './cluster.ts';
import { startCluster } from './start-cluster.ts';
import { type DriverProcess, startDriver } from './driver-process.ts';
import { type SidecarProcessOptions, startSidecar } from './sidecar-process.ts';
import type { StartedProcess } from './started-process.ts';
import { startBalancer, type TcpBalancer } from './tcp-balancer.ts';

/** Takes the log of a process that has ended. */
export type KeepLog = (title: string, text: string) => void;

export interface StageOptions {
  /** Part of the folder's name, and what the administrator calls itself. */
  name: string;
  cluster?: ClusterOptions | undefined;
  /** Files below deploy/ with rights that the sidecars get besides those of the base. */
  rbac?: readonly string[];
  /** Takes the logs of sidecars. */
  keepLog?: KeepLog | undefined;
}

export type StageSidecarOptions = Omit<SidecarProcessOptions, 'kubeconfig' | 'namespace'> & {
  /** Default: that of the stage. */
  kubeconfig?: string | undefined;
  /** Of its log. */
  title?: string;
};

interface ClaimName {
  /** Default: `default`. */
  namespace?: string;
  name: string;
}

interface ClaimFields {
  annotations?: Record<string, string>;
  /** Default 1Gi. */
  size?: string;
  dataSource?: PersistentVolumeClaim['spec']['dataSource'];
}

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const readyLine = 'Started provisioner controller';
/** A sidecar that takes longer to end is killed, in milliseconds. */
const endMs = 5000;

/** A cluster, an administrator's access to it, and the drivers and sidecars that are started on it; closing it ends them all. */
export class Stage implements AsyncDisposable {
  readonly cluster: Cluster;
  /** Goes with the stage. Its path is short, as that of a socket must be. */
  readonly folder: string;
  /** Path of the sidecars' kubeconfig. */
  readonly kubeconfig: string;
  /** The API server as the sidecars reach it. */
  readonly origin: ApiOrigin;
  readonly transport: Transport;
  readonly client: KubeClient;
  /** The same access by the public client library. */
  readonly admin: Admin;
  readonly #keepLog: KeepLog | undefined;
  readonly #opened: AsyncDisposableStack;
  /** Sidecars that are running. */
  readonly #sidecars = new Set<StartedProcess>();
  #files = 0;

  private constructor(
    options: StageOptions,
    parts: { cluster: Cluster; folder: string; kubeconfig: string },
    opened: AsyncDisposableStack,
  ) {
    const { adminKubeconfig } = parts.cluster;
    this.cluster = parts.cluster;
    this.folder = parts.folder;
    this.kubeconfig = parts.kubeconfig;
    this.origin = originOf(parts.kubeconfig);
    this.#keepLog = options.keepLog;
    this.#opened = opened;
    const how = { kubeconfig: adminKubeconfig, environment: {}, userAgent: options.name, logger: silentLogger };
    this.transport = opened.use(connect(how));
    this.client = new KubeClient({ transport: this.transport, fieldManager: options.name });
    this.admin = connectAdmin(adminKubeconfig);
  }

  static async open(options: StageOptions): Promise<Stage> {
    await using opened = new AsyncDisposableStack();
    const cluster = await startCluster(options.cluster);
    opened.defer(() => cluster.stop());
    const folder = await mkdtemp(path.join(tmpdir(), `${options.name}-`));
    opened.defer(() => rm(folder, { recursive: true, force: true }));
    for (const file of options.rbac ?? []) {
      const manifests = await readFile(path.join(import.meta.dirname, '../../deploy', file), 'utf8');
      opened.defer(await cluster.grantSidecar(manifests));
    }
    const kubeconfig = await cluster.sidecarKubeconfig();
    return new Stage(options, { cluster, folder, kubeconfig }, opened.move());
  }

  /** Registers what to do when the stage is closed; what was registered last is done first. */
  defer(end: () => unknown): void {
    this.#opened.defer(async () => {
      await end();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const end = async (sidecar: StartedProcess): Promise<void> => {
      await Promise.race([sidecar.stop(), delay(endMs, undefined, { ref: false })]);
      await sidecar.stop('SIGKILL');
    };
    await Promise.all(Array.from(this.#sidecars, end));
    await this.#opened.disposeAsync();
  }

  /** Starts the sample driver. */
  async startDriver(driverName: string, flags: readonly string[] = []): Promise<DriverProcess> {
    const folder = path.join(this.folder, String(this.#files++));
    await mkdir(folder);
    const driver = await startDriver({ driverName, folder, flags });
    this.defer(() => driver.stop('SIGKILL')); // it may be halted
    return driver;
  }

  async startSidecar({ title = 'sidecar', ...options }: StageSidecarOptions): Promise<StartedProcess> {
    const { kubeconfig = this.kubeconfig } = options;
    const sidecar = await startSidecar({ ...options, kubeconfig, namespace: this.cluster.sidecarNamespace });
    const from = new Date().toISOString();
    void sidecar.ending().then((how) => {
      this.#sidecars.delete(sidecar);
      this.#keepLog?.(`${title} from ${from} to ${new Date().toISOString()}: ${how}`, sidecar.log());
    });
    this.#sidecars.add(sidecar);
    return sidecar;
  }

  /** Follows the objects of a resource. @returns once all that exist have been seen. */
  async watch<T extends KubeObject>(resource: Resource, seen: (object: T, isGone: boolean) => void): Promise<void> {
    const informer = new Informer<T>({
      transport: this.transport,
      resource,
      transform: (object) => object as T,
      clock: systemClock,
      logger: silentLogger,
    });
    informer.addHandler({
      onAdd: (object) => seen(object, false),
      onUpdate: (old, object) => {
        if (old.metadata.resourceVersion !== object.metadata.resourceVersion) seen(object, false);
      },
      onDelete: (gone) => seen('object' in gone ? gone.object : gone, true),
    });
    const watching = new AbortController();
    const running = informer.run(watching.signal);
    this.defer(async () => {
      watching.abort(new Error('the stage is closed'));
      await running;
    });
    await informer.synced;
  }

  /** A load balancer before the API server, and the path of a kubeconfig with which a sidecar uses it. */
  async balancer(options: { delayMs?: number } = {}): Promise<{ balancer: TcpBalancer; kubeconfig: string }> {
    const { protocol, hostname, port, origin } = new URL(this.origin.url);
    const balancer = this.#opened.use(await startBalancer([Number(port)], options));
    const text = await readFile(this.kubeconfig, 'utf8');
    const url = `${protocol}//${hostname}:${balancer.port}`;
    return { balancer, kubeconfig: await this.#newKubeconfig(text.replaceAll(origin, url)) };
  }

  /** A proxy before the API server, and the path of a kubeconfig with which a sidecar uses it. */
  async proxy(): Promise<{ proxy: ApiProxy; kubeconfig: string }> {
    const proxy = this.#opened.use(await ApiProxy.start(this.origin));
    return { proxy, kubeconfig: await this.#newKubeconfig(kubeconfigText({ url: proxy.url })) };
  }

  async createNamespace(name: string): Promise<void> {
    await this.client.create<KubeObject>(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }

  async createClass(name: string, provisioner: string, more: Partial<StorageClass> = {}): Promise<void> {
    await this.client.create<StorageClass>(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner,
      reclaimPolicy: 'Delete',
      ...more,
    });
  }

  async createClaim(
    { namespace = 'default', name }: ClaimName,
    storageClassName: string,
    { annotations, size = '1Gi', dataSource }: ClaimFields = {},
  ): Promise<PersistentVolumeClaim> {
    return await this.client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name, ...(annotations && { annotations }) },
      spec: {
        storageClassName,
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: size } },
        ...(dataSource && { dataSource }),
      },
    });
  }

  async deleteClaim({ namespace = 'default', name }: ClaimName): Promise<void> {
    await this.client.delete(persistentVolumeClaims, { namespace, name });
  }

  async #newKubeconfig(text: string): Promise<string> {
    const file = path.join(this.folder, `kubeconfig-${this.#files++}`);
    await writeFile(file, text, { mode: 0o600 });
    return file;
  }
}

/** The API server that a kubeconfig leads to. */
function originOf(kubeconfig: string): ApiOrigin {
  const config = loadKubeconfig(kubeconfig);
  const { server = '', caData } = config.getCurrentCluster() ?? {};
  const ca = caData === undefined ? undefined : Buffer.from(caData, 'base64').toString();
  return { url: server, ca, token: config.getCurrentUser()?.token };
}

/** Opens a stage with what a script needs on it; if that fails, the stage is closed again. */
export async function openStage<More extends object>(
  options: StageOptions,
  prepare: (stage: Stage) => Promise<More>,
): Promise<Stage & More> {
  const stage = await Stage.open(options);
  try {
    return Object.assign(stage, await prepare(stage));
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}

/** Appends logs to a file, if there is a folder for it. */
export function logFile(folder: string | undefined, name: string): KeepLog {
  if (folder === undefined) return () => undefined;
  mkdirSync(folder, { recursive: true });
  return (title, text) => appendFileSync(path.join(folder, name), `=== ${title}\n${text}\n`);
}

/** Waits until the caches of a sidecar are filled, and it leads. @returns whether it does within that time, and still runs. */
export async function becomesReady(sidecar: StartedProcess, withinMs: number): Promise<boolean> {
  const endMs = performance.now() + withinMs;
  const hasSaidSo = (): boolean => sidecar.log().includes(readyLine);
  while (sidecar.running() && !hasSaidSo() && performance.now() < endMs) await delay(5);
  return sidecar.running() && hasSaidSo();
}

/** As `becomesReady`. @throws with the log when it is not. */
export async function untilReady(sidecar: StartedProcess, withinMs = 60_000): Promise<void> {
  if (await becomesReady(sidecar, withinMs)) return;
  throw new Error(
    `the sidecar is not ready${sidecar.running() ? '' : ', it has ended'}:\n${sidecar.log().slice(-4000)}`,
  );
}

/** Waits until `done` holds. @throws when it does not within `timeoutMs`. */
export async function until(what: string, done: () => boolean | Promise<boolean>, timeoutMs = 300_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await done())) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${timeoutMs / 1000} s`);
    await delay(5);
  }
}

/** Runs `work` for 0 to count-1, at most `width` at once. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker));
}
