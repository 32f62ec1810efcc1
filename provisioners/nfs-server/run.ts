/** The whole program: checks, NFS server, controller. */
import { stat, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  compatibleElection,
  connect,
  GidAllocator,
  KeyedLocks,
  KubeClient,
  type Logger,
  type ProvisionController,
  type Recorder,
  runProvisioner,
} from '../../src/index.ts';
import { EventRecorder } from '../../src/kube.ts';
import { AtomicFile } from './atomic-file.ts';
import { ClassVolumes } from './class-volumes.ts';
import { type ExportDirectoryLock, lockDirectory } from './directory-lock.ts';
import { DiskProbe, type DiskProblem } from './disk-probe.ts';
import { ExportLimit } from './export-limit.ts';
import { UsageError } from './flags.ts';
import { ownIdentity } from './identity-file.ts';
import { LimitEvents } from './limit-events.ts';
import { LostExports } from './lost-exports.ts';
import { LostQuotas } from './lost-quotas.ts';
import { NfsProvisioner } from './nfs-provisioner.ts';
import { OwnVolumes } from './own-volumes.ts';
import { ProjectQuota } from './project-quota.ts';
import { serverAddress } from './server-address.ts';
import { serverMetrics } from './server-metrics.ts';
import { startServing } from './serving.ts';
import type { Settings } from './settings.ts';
import { UnexportRequests } from './unexport-requests.ts';
import { VolumeDirectories } from './volume-directory.ts';

/** `statfs` of a directory that is itself on NFS (statfs(2)). */
const nfsMagic = 0x6969;

/**
 * How long calls of a killed process may still have an effect, in milliseconds: the lock on the export directory is released only
 * after all its threads have ended, and ganesha and its bus are killed with it. It is short, so that a process in a crash loop still
 * cleans up.
 */
export const maxCallMs = 2000;
/** The same where the directory could not be locked: another process may be at work. */
const unlockedMaxCallMs = 15_000;
/** Until the next attempt to lead, in milliseconds. */
const campaignPauseMs = 2000;

/** Set after the parts that call it were created. */
interface Late {
  volumes?: OwnVolumes;
  lost?: LostExports;
  quotas?: LostQuotas;
  onDisk?: (problem: DiskProblem | undefined) => void;
}

/**
 * Runs until a signal ends it.
 *
 * @returns the exit code, as `runProvisioner` does.
 * @throws {UsageError} when it cannot start as it is set up.
 */
export async function run(settings: Settings, logger: Logger): Promise<number> {
  const { paths, provisionerName, httpEndpoint, intentJournal, leaderElect } = settings;
  await checkExportDirectory(paths.exportDirectory);
  const connection = {
    ...(settings.kubeconfig !== '' && { kubeconfig: settings.kubeconfig }),
    ...(settings.master !== '' && { master: settings.master }),
  };
  await using transport = connect({ ...connection, logger }); // an error in it is reported before anything is written
  await using lock = await lockUnlessEnded(paths.exportDirectory, logger);
  if (lock === undefined) return 0;
  const late: Late = {};
  const quota = settings.xfsQuota ? await openQuota(settings, late, logger) : undefined;
  const identity = await ownIdentity(paths.identity);
  const directories = new VolumeDirectories(paths.exportDirectory);
  let controller: ProvisionController | undefined;
  const ownVolumes = new OwnVolumes({
    transport,
    identity: identity.id,
    directories,
    onChange: (name) => {
      late.lost?.changed(name);
      late.quotas?.changed(name);
    },
    logger,
  });
  late.volumes = ownVolumes;
  await using disk = settings.probe && watchDisk(settings, logger, (problem) => late.onDisk?.(problem));
  const checkDisk = (): void => disk?.check();
  await using serving = await startServing(settings, {
    directories,
    mayRestart: () => disk?.respondsWithin(settings.probe?.intervalMs ?? 0) ?? Promise.resolve(true),
    isTaken: (id) => ownVolumes.hasId(id),
    onEdited: () => late.lost?.lookAtAll(),
    onServing: () => {
      controller?.retryFailed();
      late.lost?.lookAtAll();
    },
    logger,
  });
  const { exports } = serving;
  await using recorder = new EventRecorder({
    client: new KubeClient({ transport, fieldManager: provisionerName.slice(0, 128) }),
    component: `${provisionerName}_${os.hostname()}`,
    logger,
  });
  const lostExports = new LostExports({
    volumes: ownVolumes,
    identity,
    exports,
    directories,
    recorder,
    isServing: () => serving.isReady,
    checkDisk: () => disk?.checkResponds(),
    logger,
  });
  late.lost = lostExports;
  late.onDisk = (problem) => {
    if (problem === undefined) controller?.retryFailed();
    else recordOnPod(settings, recorder, problem);
  };
  const isLeaving = (directory: string): boolean => lostExports.isLeaving(directory);
  const lostQuotas =
    quota && new LostQuotas({ volumes: ownVolumes, quota, directories, isLeaving, recorder, checkDisk, logger });
  if (lostQuotas !== undefined) late.quotas = lostQuotas;
  const limit = new ExportLimit({
    max: settings.maxExports,
    count: () => exports.count,
    wake: (uid) => controller?.wakeClaim(uid),
  });
  const requests = new UnexportRequests({
    volumes: ownVolumes,
    exports,
    directories,
    isDiskUp: () => disk?.problem === undefined,
    onRemoved: () => {
      limit.freed();
      lostExports.lookAtAll(); // a PersistentVolume may have come meanwhile
    },
    logger,
  });
  await using _background = inBackground(async (stop) => {
    await Promise.all([lostExports.run(stop), lostQuotas?.run(stop), requests.run(stop)]);
  });
  const onUnstable = (): void =>
    logger.warn(
      { cure: 'set SERVICE_NAME' },
      'Volumes have the address of this Pod: clients lose them when it is replaced',
    );
  logger.info(
    { identity: identity.id, exports: exports.count, directory: paths.exportDirectory },
    'Starting nfs-provisioner',
  );
  const locks = new KeyedLocks();
  const provision = (): Promise<number> =>
    runProvisioner({
      provisionerName,
      provisioner: async ({ client, recorder, volumes }) => {
        await identity
          .keep()
          .catch((err: unknown) =>
            logger.warn(
              { file: identity.file, err },
              'The identity file could not be written; no volume is created before it is',
            ),
          );
        return new NfsProvisioner({
          identity: identity.id,
          keepIdentity: () => identity.keep(),
          directories,
          exports,
          lostExports,
          quota,
          limit,
          limitEvents: new LimitEvents(recorder),
          classVolumes: new ClassVolumes({
            volumes,
            isExported: (name) => exports.find(path.join(paths.exportDirectory, name)) !== undefined,
          }),
          gids: new GidAllocator({ client }),
          serverAddress: (signal) => serverAddress(settings.address, { client, onUnstable, signal }),
          whenServing: (signal) => serving.whenReady(signal),
          checkDisk,
          locks,
          logger,
        });
      },
      logger,
      connection,
      leaderElection: leaderElect && compatibleElection(provisionerName, settings.address.podNamespace),
      intentJournal,
      soleInstance: identity.id, // only one process uses the directory
      maxCallMs: lock.isHeld ? maxCallMs : unlockedMaxCallMs,
      checks: {
        // a restart of the container does not cure a disk that hangs
        live: () => (disk?.problem === undefined ? serving.problem : undefined),
        ready: () => disk?.problem ?? serving.problem ?? (serving.isReady ? undefined : 'the NFS server is starting'),
      },
      ...(httpEndpoint !== '' && { http: { address: httpEndpoint } }),
      registry: serverMetrics(serving, { lost: lostExports, lostQuotas, disk }),
      onController: (made) => {
        controller = made;
      },
    });
  return leaderElect
    ? await provisionAgain(provision, { hasLed: () => controller !== undefined, logger })
    : await provision();
}

/**
 * Provisions until a signal ends it. A lost lease, such as while the API server does not respond, ends only provisioning: clients of the
 * NFS server do not need an API server, and this process leads again once it holds the lease.
 */
async function provisionAgain(
  provision: () => Promise<number>,
  { hasLed, logger }: { hasLed: () => boolean; logger: Logger },
): Promise<number> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const isEnding = (): boolean => ending.signal.aborted;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  try {
    for (;;) {
      const code = await provision();
      if (code === 0 || isEnding() || !hasLed()) return code;
      logger.warn(
        { retryInMs: campaignPauseMs },
        'Provisioning has stopped until the lease is acquired again; the NFS server keeps running',
      );
      await delay(campaignPauseMs, undefined, { signal: ending.signal }).catch(() => undefined);
      if (isEnding()) return 0;
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
  }
}

function watchDisk(
  { paths, probe }: Settings,
  logger: Logger,
  onChange: (problem: DiskProblem | undefined) => void,
): DiskProbe | undefined {
  if (probe === undefined) return undefined;
  const { intervalMs, silentMs: patienceMs } = probe;
  return new DiskProbe({ directory: paths.exportDirectory, intervalMs, patienceMs, onChange, logger });
}

/** Outside of a cluster there is no Pod. */
function recordOnPod({ address }: Settings, recorder: Recorder, { reason, message }: DiskProblem): void {
  if (address.outOfCluster || address.podNamespace === '') return;
  const about = { apiVersion: 'v1', kind: 'Pod', namespace: address.podNamespace, name: os.hostname() };
  recorder.event(about, 'Warning', reason, message);
}

/** Disposing it aborts the work, and waits for its end. */
function inBackground(work: (stop: AbortSignal) => Promise<void>): AsyncDisposable {
  const stop = new AbortController();
  const working = work(stop.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await working;
    },
  };
}

/** @returns undefined when SIGINT or SIGTERM has ended the wait for another process. */
async function lockUnlessEnded(directory: string, logger: Logger): Promise<ExportDirectoryLock | undefined> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  try {
    const lock = await lockDirectory(directory, { signal: ending.signal, logger });
    if (!ending.signal.aborted) return lock;
    await lock[Symbol.asyncDispose](); // the signal came while the lock was taken
    return undefined;
  } catch (error) {
    if (ending.signal.aborted) return undefined;
    throw error;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, end);
  }
}

/** @throws {UsageError} */
async function checkExportDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() !== true) {
    throw new UsageError(`the export directory ${directory} does not exist: mount a volume there, or set -export-dir`);
  }
  if ((await statfs(directory)).type === nfsMagic) {
    throw new UsageError(`the export directory ${directory} is on NFS: a local file system is needed`);
  }
}

function openQuota({ paths }: Settings, late: Pick<Late, 'volumes'>, logger: Logger): Promise<ProjectQuota> {
  const isTaken = (id: number): boolean => late.volumes?.hasProjectId(id) ?? false;
  const file = new AtomicFile(paths.projects);
  return ProjectQuota.open({ mountPoint: paths.exportDirectory, file, isTaken, logger });
}
