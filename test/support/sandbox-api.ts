/** The sandbox's API server with our transport and caches on it, for controllers that watch. */
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { Informer } from '../../src/kube/cache/informer.ts';
import { connect } from '../../src/kube/client/connect.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { Transport } from '../../src/kube/client/transport.ts';
import { persistentVolumeClaims, type PersistentVolumeClaim } from '../../src/provision/objects.ts';
import { ApiServer, type ApiServerOptions } from '../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxMeta, SandboxObject } from '../../sandbox/api/client.ts';

export const claimsRef = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
export const snapshotsRef = { group: 'snapshot.storage.k8s.io', version: 'v1', plural: 'volumesnapshots' };

/** A running API server; dispose it. */
export class SandboxApi implements AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  /** The API without HTTP, for the test's own doings. */
  readonly own: SandboxClient;
  readonly transport: Transport;
  readonly client: KubeClient;
  /** All claims, as the controllers see them. */
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(server: ApiServer, url: string) {
    const clock = systemClock;
    const logger = silentLogger;
    this.server = server;
    this.url = url;
    this.own = server.client('test');
    this.transport = connect({ master: url, environment: {}, userAgent: 'test', logger });
    this.client = new KubeClient({ transport: this.transport, fieldManager: 'test' });
    this.claims = new Informer<PersistentVolumeClaim>({
      transport: this.transport,
      resource: persistentVolumeClaims,
      transform: (object) => object as PersistentVolumeClaim,
      clock,
      logger,
      freeze: true,
    });
    this.#running = this.claims.run(this.#stop.signal);
  }

  static async start(options: ApiServerOptions = {}): Promise<SandboxApi> {
    const server = new ApiServer({ ...options, namespaces: ['ns1', 'ns2'] });
    const { url } = await server.start();
    const api = new SandboxApi(server, url);
    await api.claims.synced;
    return api;
  }

  /** A claim of 1Gi with these fields. */
  addClaim(metadata: SandboxMeta, spec: object = {}, phase?: string): SandboxObject {
    const created = this.own.create(claimsRef, {
      metadata: { namespace: 'ns1', ...metadata },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'sc',
        ...spec,
      },
    });
    return phase === undefined ? created : this.setPhase(created.metadata.name, phase, created.metadata.namespace);
  }

  setPhase(name: string, phase: string, namespace = 'ns1'): SandboxObject {
    const claim = structuredClone(this.own.get(claimsRef, { namespace, name }));
    if (claim === undefined) throw new Error(`no claim ${namespace}/${name}`);
    return this.own.updateStatus(claimsRef, { ...claim, status: { ...(claim['status'] as object), phase } });
  }

  addSnapshot(metadata: SandboxMeta): SandboxObject {
    return this.own.create(snapshotsRef, {
      metadata: { namespace: 'ns1', ...metadata },
      spec: { source: { persistentVolumeClaimName: 'src' } },
    });
  }

  /** Resolves once the cache of claims fulfils the condition. */
  async cached(condition: (claims: Informer<PersistentVolumeClaim>) => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (condition(this.claims)) resolve();
      };
      this.claims.addHandler({ onAdd: look, onUpdate: look, onDelete: look });
      look();
    });
  }

  /** Resolves once an object of the resource fulfils the condition; `undefined` stands for one that is gone. */
  async until(
    resource: typeof claimsRef,
    name: { namespace: string; name: string },
    condition: (object: SandboxObject | undefined) => boolean,
  ): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!condition(this.own.get(resource, name))) return;
        subscription.close();
        resolve();
      };
      const subscription = this.own.subscribe(resource, look);
      look();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.transport[Symbol.asyncDispose]();
    await this.server.close();
  }
}

/** A logger that resolves a promise at the `count`th line with this message. */
export function awaitingLogger(message: string, count = 1): { logger: Logger; seen: Promise<undefined> } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  let left = count;
  const note = (_: object, text: string): void => {
    if (text === message && (left -= 1) === 0) resolve(undefined);
  };
  const logger: Logger = { error: note, warn: note, info: note, debug: note, trace: note, child: () => logger };
  return { logger, seen: promise };
}
