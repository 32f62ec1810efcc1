/**
 * The same with everything that production asks for: node replicated.ts FOLDER
 *
 * FOLDER lies on a file system that all nodes mount at the same path. Any number of instances may run; one works, the
 * others stand by.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, statfs } from 'node:fs/promises';
import { createServer } from 'node:http';
import { hostname } from 'node:os';
import path from 'node:path';
import {
  connect,
  createRegistry,
  EventRecorder,
  ExponentialLimiter,
  IgnoredError,
  KubeClient,
  LeaderElector,
  type PersistentVolume,
  type PersistentVolumeClaim,
  prometheusMetrics,
  ProvisionController,
  ProvisionError,
  type Provisioner,
  type ProvisionOptions,
  quantityBytes,
  textLogger,
  workQueueMetrics,
} from 'csi-provisioner';

const provisionerName = 'hostpath.example.com';

class SharedFolders implements Provisioner {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async provision({ claim, storageClass, volumeName }: ProvisionOptions): Promise<PersistentVolume> {
    const { mode = '777' } = storageClass.parameters ?? {};
    if (!/^[0-7]{3}$/.test(mode)) {
      const message = `class ${storageClass.metadata.name}: mode ${JSON.stringify(mode)} is not like 755`;
      throw new ProvisionError(message, { state: 'finished', infeasible: true });
    }
    const wanted = quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
    const folder = path.join(this.#root, volumeName);
    if (!existsSync(folder) && wanted > (await this.#freeBytes())) {
      throw new ProvisionError(`${wanted} bytes are more than are free`, { state: 'finished' });
    }
    await mkdir(folder, { recursive: true });
    await chmod(folder, parseInt(mode, 8));
    return { metadata: { name: volumeName }, spec: { hostPath: { path: folder, type: 'Directory' } } };
  }

  async delete({ metadata, spec }: PersistentVolume): Promise<void> {
    const folder = path.join(this.#root, metadata.name);
    const lies = spec.hostPath?.path;
    if (lies !== folder) throw new IgnoredError(`it lies in ${lies ?? 'no folder'}, not in ${folder}`);
    await rm(folder, { recursive: true, force: true });
  }

  shouldProvision(claim: PersistentVolumeClaim): boolean {
    return claim.metadata.namespace !== 'kube-system';
  }

  shouldDelete(volume: PersistentVolume): boolean {
    return volume.metadata.annotations?.['example.com/keep'] !== 'true';
  }

  async #freeBytes(): Promise<bigint> {
    const { bavail, bsize } = await statfs(this.#root, { bigint: true });
    return bavail * bsize;
  }
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
const logger = textLogger();
await using transport = connect({ logger });
await using electionTransport = connect({ logger });

const registry = createRegistry();
const queues = workQueueMetrics(registry);
await using server = createServer((_request, response) => {
  void registry.metrics().then((text) => response.setHeader('content-type', registry.contentType).end(text));
});
server.listen(Number(process.env['METRICS_PORT'] ?? 8080));

const controller = new ProvisionController({
  provisionerName,
  provisioner: new SharedFolders(path.resolve(process.argv[2] ?? 'volumes')),
  transport,
  logger,
  addFinalizer: true,
  save: { kind: 'queue', limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 60_000 }) },
  limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 }),
  failedProvisionThreshold: 0,
  failedDeleteThreshold: 0,
  provisionTimeoutMs: 60_000,
  metrics: prometheusMetrics(registry),
  queueMetrics: queues.forQueue,
});

const identity = `${hostname()}_${process.pid}`;
await using recorder = new EventRecorder({
  client: new KubeClient({ transport: electionTransport, fieldManager: provisionerName }),
  component: `${provisionerName}/${identity}`,
});
const elector = new LeaderElector({
  transport: electionTransport,
  guarded: transport,
  recorder,
  namespace: process.env['POD_NAMESPACE'] ?? 'default',
  name: provisionerName,
  identity,
  logger,
});
const outcome = await elector.run({
  stop: stop.signal,
  work: (lost) => controller.run({ stop: stop.signal, abort: lost }),
});
if (outcome === 'lost') process.exitCode = 1;
