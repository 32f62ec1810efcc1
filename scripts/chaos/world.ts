import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, TransportError } from '../../src/kube/client/api-error.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '../../src/provision/objects.ts';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { type KeepLog, openStage, type Stage } from '../../test/support/stage.ts';
import type { FoundClaim, Outcome, SeenVolume } from './count.ts';

/** A stage, and what an administrator sees of its claims and volumes. */
export type World = Stage & {
  /** Kills the API server and starts it again; those who ask at the same time wait for each other. */
  restartApi: () => Promise<void>;
  /** How often that was done. */
  apiRestarts: () => number;
  /** All claims, kept up to date, by UID. */
  claims: ReadonlyMap<string, FoundClaim>;
  /** All volumes that were ever seen, by UID, as they were seen last. */
  volumes: ReadonlyMap<string, SeenVolume>;
};

/** Starts the cluster and watches it. @param keepLog - takes the logs of sidecars. */
export async function openWorld(target: ClusterTarget, keepLog: KeepLog): Promise<World> {
  const cluster = { target, ownCluster: true, sandbox: { faults: true } };
  const rbac = ['components/leader-election/rbac.yaml'];
  return await openStage({ name: 'chaos', cluster, rbac, keepLog }, async (stage) => {
    const [claims, volumes] = [new Map<string, FoundClaim>(), new Map<string, SeenVolume>()];
    await stage.watch<PersistentVolumeClaim>(persistentVolumeClaims, (claim, isGone) => {
      if (isGone) claims.delete(claim.metadata.uid ?? '');
      else claims.set(claim.metadata.uid ?? '', foundClaim(claim));
    });
    await stage.watch<PersistentVolume>(persistentVolumes, (volume) => {
      const { uid = '' } = volume.metadata;
      volumes.set(uid, seenVolume(volume, volumes.get(uid)));
    });
    let [restarted, apiRestarts] = [Promise.resolve(), 0];
    const restart = async (): Promise<void> => {
      apiRestarts++;
      await stage.cluster.apiServer?.kill();
      await stage.cluster.apiServer?.restart();
    };
    return {
      restartApi: () => (restarted = restarted.then(restart)),
      apiRestarts: () => apiRestarts,
      claims,
      volumes,
    };
  });
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
