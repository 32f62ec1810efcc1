import { setTimeout as delay } from 'node:timers/promises';
import { showing } from '../scripts/terminal-progress.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '../src/provision/objects.ts';
import type { ClusterTarget } from '../test/support/cluster.ts';
import { freePort } from '../test/support/free-ports.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import type { DriverProcess } from '../test/support/driver-process.ts';
import { openStage, type Stage, type StageSidecarOptions } from '../test/support/stage.ts';
import type { StartedProcess } from '../test/support/started-process.ts';

export const driverName = 'bench.csi.example.com';
export const className = 'bench';
/** Requests of the administrator at once: wide enough to keep a sidecar busy, small enough to leave it the CPU. */
export const width = 20;

/** What a benchmark runs on: a cluster, with a driver and its class. */
export type BenchStage = Stage & {
  /** Where it is, for a heading. */
  place: string;
  /** Of a kubeconfig with which the sidecars are as far away as was asked for. */
  kubeconfig: string;
  driver: DriverProcess;
  /** Claims by `namespace/name` that are Bound, kept up to date. */
  boundClaims: Set<string>;
  /** Names of the volumes that exist, kept up to date. */
  volumeNames: Set<string>;
  /** Requests of the sidecar's user in a span of time, as `verb resource`; undefined where nothing is recorded. */
  requests(fromMs: number, toMs: number): Promise<Map<string, number> | undefined>;
};

/**
 * Starts the real control plane, or the sandbox.
 *
 * @param options.latencyMs - how much later the requests of the sidecar arrive, and their responses, in milliseconds. Default 0.
 */
export async function openBenchStage(
  target: ClusterTarget,
  { latencyMs = 0 }: { latencyMs?: number } = {},
): Promise<BenchStage> {
  if (target === 'kubernetes') await findPrograms(); // compiles them the first time, with a progress line of its own
  const cluster = { target, sandbox: { rbac: false }, auditLog: true };
  return await showing(
    () => `starting ${target === 'kubernetes' ? 'the control plane' : 'the sandbox'}`,
    () =>
      openStage({ name: 'bench', cluster }, async (stage) => {
        const driver = await stage.startDriver(driverName);
        await stage.createClass(className, driverName);
        const place = target === 'sandbox' ? 'the sandbox' : 'a real control plane';
        return {
          place: latencyMs > 0 ? `${place}, ${latencyMs} ms away` : place,
          kubeconfig: latencyMs > 0 ? (await stage.balancer({ delayMs: latencyMs })).kubeconfig : stage.kubeconfig,
          driver,
          ...(await watchAll(stage)),
          requests: (fromMs: number, toMs: number) => countRequests(stage, fromMs, toMs),
        };
      }),
  );
}

/** Follows claims and volumes. */
export async function watchAll(stage: Stage): Promise<Pick<BenchStage, 'boundClaims' | 'volumeNames'>> {
  const [boundClaims, volumeNames] = [new Set<string>(), new Set<string>()];
  await stage.watch<PersistentVolumeClaim>(persistentVolumeClaims, ({ metadata, status }, isGone) => {
    const key = `${metadata.namespace ?? ''}/${metadata.name}`;
    if (isGone) boundClaims.delete(key);
    else if (status?.phase === 'Bound') boundClaims.add(key);
  });
  await stage.watch<PersistentVolume>(persistentVolumes, ({ metadata: { name } }, isGone) => {
    if (isGone) volumeNames.delete(name);
    else volumeNames.add(name);
  });
  return { boundClaims, volumeNames };
}

async function countRequests(
  { cluster }: Stage,
  fromMs: number,
  toMs: number,
): Promise<Map<string, number> | undefined> {
  if (cluster.requests === undefined) return undefined;
  await delay(500); // the API server writes its log in batches
  const counts = new Map<string, number>();
  const user = `system:serviceaccount:${cluster.sidecarNamespace}:csi-provisioner`;
  for await (const event of cluster.requests()) {
    const atMs = Date.parse(event.requestReceivedTimestamp);
    if (event.user.username !== user || atMs < fromMs || atMs > toMs || event.stage !== 'ResponseComplete') continue;
    const failed = (event.responseStatus?.code ?? 200) >= 400 ? ` (${event.responseStatus?.code ?? ''})` : '';
    const key = `${event.verb} ${event.objectRef?.resource ?? event.requestURI}${failed}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** A sidecar whose metrics can be read. */
export interface MeteredSidecar {
  process: StartedProcess;
  /** Sum of a metric's samples; 0 for one that is not there. */
  metric: (name: string) => Promise<number>;
}

/** Starts a sidecar that serves its metrics. */
export async function startMetered(stage: Stage, options: StageSidecarOptions): Promise<MeteredSidecar> {
  const port = await freePort();
  const flags = [...(options.flags ?? []), `--http-endpoint=127.0.0.1:${port}`];
  const process = await stage.startSidecar({ ...options, flags });
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const samples = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'));
    return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  return { process, metric };
}
