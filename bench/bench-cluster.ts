import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/logger.ts';
import { Credentials } from '../src/kube/credentials/credentials.ts';
import { Informer } from '../src/kube/cache/informer.ts';
import { loadKubeConfig } from '../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../src/kube/client/kube-client.ts';
import type { KubeObject } from '../src/kube/kube-object.ts';
import { Transport } from '../src/kube/client/transport.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '../src/provision/objects.ts';
import { readAuditLog } from '../test/support/control-plane/audit-log.ts';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { startSandbox } from '../test/support/sandbox-cluster.ts';
import { putObjects, type StoredObject } from './etcd-objects.ts';
import { slowed } from './slow-link.ts';

/** As `npm run build` makes it. */
export const bundle = path.join(import.meta.dirname, '../dist/csi-provisioner.js');

/** The bundle, run with the flags of the image's entry point. */
export const bundled = `${process.execPath} --disable-sigusr1 --max-old-space-size-percentage=70 --max-semi-space-size=4 ${bundle}`;

/** By default the controller manager throttles itself to 20 requests a second: its binder would be what is measured. */
const unthrottled = {
  'kube-controller-manager': ['--kube-api-qps=2000', '--kube-api-burst=2000'],
  'kube-scheduler': ['--kube-api-qps=2000', '--kube-api-burst=2000'],
};

export const sidecarUser = 'system:serviceaccount:default:csi-provisioner';

/** The cluster a bench runs on, with an administrator's access to it. */
export interface BenchCluster extends AsyncDisposable {
  name: string;
  sidecarKubeconfig: string;
  client: KubeClient;
  /** Claims by `namespace/name` that are Bound, kept up to date. */
  boundClaims: Set<string>;
  /** Names of the volumes that exist, kept up to date. */
  volumeNames: Set<string>;
  /** Writes objects past the API server. @throws on the sandbox. */
  fill(objects: Iterable<StoredObject>): Promise<void>;
  /** Requests of the sidecar's user in a span of time, as `verb resource`; undefined where nothing is recorded. */
  requests(fromMs: number, toMs: number): Promise<Map<string, number> | undefined>;
}

/**
 * Starts the real control plane, or the sandbox.
 *
 * @param options.latencyMs - how much later the requests of the sidecar arrive, and their responses, in milliseconds. Default 0.
 */
export async function startBenchCluster(
  target: 'kubernetes' | 'sandbox',
  { latencyMs = 0 }: { latencyMs?: number } = {},
): Promise<BenchCluster> {
  if (target === 'kubernetes') await findPrograms(); // compiles them the first time, with a progress line of its own
  return await showing(
    () => `starting ${target === 'kubernetes' ? 'the control plane' : 'the sandbox'}`,
    () => openCluster(target, latencyMs),
  );
}

async function openCluster(target: 'kubernetes' | 'sandbox', latencyMs: number): Promise<BenchCluster> {
  await using cleanup = new AsyncDisposableStack();
  let [auditLogFile, etcdUrl]: (string | undefined)[] = [];
  let cluster;
  if (target === 'kubernetes') {
    const plane = cleanup.use(await startControlPlane({ auditLog: true, extraArgs: unthrottled }));
    ({ auditLogFile, etcdUrl } = plane);
    cluster = await attachToCluster(plane.adminKubeconfig);
  } else {
    cluster = await startSandbox({ rbac: false });
  }
  cleanup.defer(() => cluster.stop());
  const credentials = new Credentials({
    load: () => loadKubeConfig({ kubeconfig: cluster.adminKubeconfig, environment: {} }),
    clock: systemClock,
    logger: silentLogger,
  });
  const transport = cleanup.use(
    new Transport({ credentials, userAgent: 'bench', clock: systemClock, logger: silentLogger }),
  );
  const [boundClaims, volumeNames] = [new Set<string>(), new Set<string>()];
  const watching = new AbortController();
  const claims = informer(transport, persistentVolumeClaims);
  claims.addHandler({
    onUpdate: (_old, claim) => {
      const { status, metadata } = claim as PersistentVolumeClaim;
      if (status?.phase === 'Bound') boundClaims.add(`${metadata.namespace ?? ''}/${metadata.name}`);
    },
    onDelete: (gone) => {
      const { metadata } = 'object' in gone ? gone.object : gone;
      boundClaims.delete(`${metadata.namespace ?? ''}/${metadata.name}`);
    },
  });
  const volumes = informer(transport, persistentVolumes);
  volumes.addHandler({
    onAdd: ({ metadata }) => volumeNames.add(metadata.name),
    onDelete: (gone) => volumeNames.delete(('object' in gone ? gone.object : gone).metadata.name),
  });
  const running = [claims.run(watching.signal), volumes.run(watching.signal)];
  cleanup.defer(async () => {
    watching.abort(new Error('the bench has ended'));
    await Promise.all(running);
  });
  await Promise.all([claims.synced, volumes.synced]);
  let sidecarKubeconfig = await cluster.sidecarKubeconfig();
  if (latencyMs > 0) {
    const folder = await mkdtemp(path.join(tmpdir(), 'bench-link-'));
    cleanup.defer(() => removeFolder(folder));
    const copy = path.join(folder, 'kubeconfig');
    cleanup.use(await slowed(sidecarKubeconfig, { copy, delayMs: latencyMs }));
    sidecarKubeconfig = copy;
  }
  const owned = cleanup.move();
  const place = cluster.name === 'sandbox' ? 'the sandbox' : 'a real control plane';
  return {
    name: latencyMs > 0 ? `${place}, ${latencyMs} ms away` : place,
    sidecarKubeconfig,
    client: new KubeClient({ transport, fieldManager: 'bench' }),
    boundClaims,
    volumeNames,
    fill: async (objects) => {
      if (etcdUrl === undefined) throw new Error('the sandbox has no etcd');
      await putObjects(etcdUrl, objects);
    },
    requests: async (fromMs, toMs) =>
      auditLogFile === undefined ? undefined : countRequests(auditLogFile, fromMs, toMs),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Waits until `done` holds. @throws when it does not within `timeoutMs`. */
export async function until(what: string, done: () => boolean, timeoutMs = 300_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!done()) {
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

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

function informer(transport: Transport, resource: typeof persistentVolumes): Informer<KubeObject> {
  return new Informer<KubeObject>({
    transport,
    resource,
    transform: (object) => object,
    clock: systemClock,
    logger: silentLogger,
  });
}

async function countRequests(file: string, fromMs: number, toMs: number): Promise<Map<string, number>> {
  await delay(500); // the API server writes its log in batches
  const counts = new Map<string, number>();
  for await (const event of readAuditLog(file)) {
    const atMs = Date.parse(event.requestReceivedTimestamp);
    if (event.user.username !== sidecarUser || atMs < fromMs || atMs > toMs || event.stage !== 'ResponseComplete')
      continue;
    const failed = (event.responseStatus?.code ?? 200) >= 400 ? ` (${event.responseStatus?.code ?? ''})` : '';
    const key = `${event.verb} ${event.objectRef?.resource ?? event.requestURI}${failed}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
