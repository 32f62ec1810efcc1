import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { ApiError, TransportError } from '../../src/kube/client/api-error.ts';
import { Credentials } from '../../src/kube/credentials/credentials.ts';
import { Informer } from '../../src/kube/cache/informer.ts';
import { loadKubeConfig } from '../../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import { Transport } from '../../src/kube/client/transport.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '../../src/provision/objects.ts';
import { loadKubeconfig } from '../../test/support/admin.ts';
import type { Cluster } from '../../test/support/cluster.ts';
import { startKubernetes } from '../../test/support/kubernetes-cluster.ts';
import { startSandbox } from '../../test/support/sandbox-cluster.ts';
import type { FoundClaim, Outcome, SeenVolume } from './count.ts';

/** A cluster, and what an administrator sees of its claims and volumes. */
export interface World extends AsyncDisposable {
  cluster: Cluster;
  /** Of the API server. */
  url: string;
  client: KubeClient;
  /** Kills the API server and starts it again; those who ask at the same time wait for each other. */
  restartApi: () => Promise<void>;
  /** How often that was done. */
  apiRestarts: () => number;
  /** All claims, kept up to date, by UID. */
  claims: ReadonlyMap<string, FoundClaim>;
  /** All volumes that were ever seen, by UID, as they were seen last. */
  volumes: ReadonlyMap<string, SeenVolume>;
}

const electionRole = join(import.meta.dirname, '../../deploy/components/leader-election/rbac.yaml');

/** Starts the cluster and watches it. */
export async function openWorld(target: 'sandbox' | 'kubernetes'): Promise<World> {
  await using cleanup = new AsyncDisposableStack();
  const cluster =
    target === 'kubernetes' ? await startKubernetes() : await startSandbox({ restartable: true, faults: true });
  cleanup.defer(() => cluster.stop());
  await cluster.grantSidecar(await readFile(electionRole, 'utf8'));
  const credentials = new Credentials({
    load: () => loadKubeConfig({ kubeconfig: cluster.adminKubeconfig, environment: {} }),
    clock: systemClock,
    logger: silentLogger,
  });
  const transport = cleanup.use(
    new Transport({ credentials, userAgent: 'chaos', clock: systemClock, logger: silentLogger }),
  );
  const [claims, volumes] = [new Map<string, FoundClaim>(), new Map<string, SeenVolume>()];
  const watching = new AbortController();
  const running = [
    watch<PersistentVolumeClaim>(transport, persistentVolumeClaims, watching.signal, (claim, gone) => {
      if (gone) claims.delete(claim.metadata.uid ?? '');
      else claims.set(claim.metadata.uid ?? '', foundClaim(claim));
    }),
    watch<PersistentVolume>(transport, persistentVolumes, watching.signal, (volume) => {
      const { uid = '' } = volume.metadata;
      volumes.set(uid, seenVolume(volume, volumes.get(uid)));
    }),
  ];
  cleanup.defer(async () => {
    watching.abort(new Error('the run has ended'));
    await Promise.all(running);
  });
  let [restarted, apiRestarts] = [Promise.resolve(), 0];
  const restart = async (): Promise<void> => {
    apiRestarts++;
    await cluster.apiServer?.kill();
    await cluster.apiServer?.restart();
  };
  const owned = cleanup.move();
  return {
    cluster,
    url: loadKubeconfig(cluster.adminKubeconfig).getCurrentCluster()?.server ?? '',
    client: new KubeClient({ transport, fieldManager: 'chaos' }),
    restartApi: () => (restarted = restarted.then(restart)),
    apiRestarts: () => apiRestarts,
    claims,
    volumes,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Claims and volumes as they are now; of volumes that are gone by now what was seen of them. */
export async function readNow({ client, volumes }: World): Promise<Pick<Outcome, 'found' | 'volumes'>> {
  const [claims, existing] = await Promise.all([
    insist(() => client.list<PersistentVolumeClaim>(persistentVolumeClaims)),
    insist(() => client.list<PersistentVolume>(persistentVolumes)),
  ]);
  const all = new Map(Array.from(volumes, ([uid, volume]) => [uid, { ...volume, exists: false }]));
  for (const volume of existing ?? []) {
    const { uid = '' } = volume.metadata;
    all.set(uid, { ...seenVolume(volume, volumes.get(uid)), exists: true });
  }
  return { found: (claims ?? []).map(foundClaim), volumes: [...all.values()] };
}

function foundClaim({ metadata, status, spec }: PersistentVolumeClaim): FoundClaim {
  return { uid: metadata.uid ?? '', phase: status?.phase ?? '', volumeName: spec.volumeName ?? '' };
}

function seenVolume({ metadata, spec, status }: PersistentVolume, before: SeenVolume | undefined): SeenVolume {
  return {
    name: metadata.name,
    handle: spec.csi?.volumeHandle ?? '',
    claimUid: spec.claimRef?.uid ?? '',
    policy: spec.persistentVolumeReclaimPolicy ?? '',
    phase: status?.phase ?? '',
    sinceMs: before?.sinceMs ?? Date.now(),
    exists: true,
  };
}

async function watch<T extends KubeObject>(
  transport: Transport,
  resource: Resource,
  signal: AbortSignal,
  seen: (object: T, gone: boolean) => void,
): Promise<void> {
  const informer = new Informer<T>({
    transport,
    resource,
    transform: (object) => object as T,
    clock: systemClock,
    logger: silentLogger,
  });
  informer.addHandler({
    onAdd: (object) => seen(object, false),
    onUpdate: (_old, object) => seen(object, false),
    onDelete: (gone) => seen('object' in gone ? gone.object : gone, true),
  });
  await informer.run(signal);
}

/**
 * Repeats a request until the API server has responded to it; whoever restarts it makes every request fail for a while.
 *
 * @param settled - what the responses are called that a repeat would get again, or that an earlier attempt has caused.
 * @returns undefined for one of these.
 * @throws the last failure after a minute.
 */
export async function insist<T>(request: () => Promise<T>, settled: readonly string[] = []): Promise<T | undefined> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      const mayPass = error instanceof ApiError || error instanceof TransportError;
      if (!mayPass || performance.now() > endMs) throw error;
      if (error instanceof ApiError && settled.includes(error.reason)) return undefined;
    }
    await delay(100);
  }
}
