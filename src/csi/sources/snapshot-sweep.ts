/** Removes the protection left on snapshots that no claim restores from any more. */
import type { Clock } from '../../base/clock.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import { ConflictError, ForbiddenError, NotFoundError } from '../../kube/client/api-error.ts';
import { Informer } from '../../kube/cache/informer.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { apiVersion, objectKey, type KubeObject } from '../../kube/kube-object.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import type { ReflectorMetrics } from '../../kube/cache/reflector-metrics.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { waitForSync } from '../../kube/cache/wait-for-sync.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { type OpenSource, snapshotGroup } from './data-source.ts';
import { removeFinalizer, snapshotProtectionFinalizer } from './finalizers.ts';
import { SnapshotNeededError, volumeSnapshots } from './snapshot-source.ts';

export interface SnapshotSweepOptions {
  client: KubeClient;
  transport: Transport;
  claims: Lister<PersistentVolumeClaim>;
  /** Sources of volumes in progress, also of claims that are gone. Default: none. */
  plannedSources?: (() => Iterable<OpenSource>) | undefined;
  /** Records events about snapshots under deletion that keep their protection. Default: none are recorded. */
  recorder?: Recorder | undefined;
  /** `--snapshot-orphan-sweep-interval`: milliseconds from the end of one sweep to the next; above 0. */
  intervalMs: number;
  clock: Clock;
  logger: Logger;
  metrics?: ReflectorMetrics | undefined;
}

/**
 * Sweeps at once and then regularly, until the signal aborts; then it resolves. Ends early, with a log line,
 * without permission to list snapshots. To be started where the snapshot API is there and the driver has
 * CREATE_DELETE_SNAPSHOT.
 */
export async function runSnapshotSweep(options: SnapshotSweepOptions, signal: AbortSignal): Promise<void> {
  const { transport, clock, logger, metrics } = options;
  logger.info({}, 'Starting SnapshotFinalizerProtection controller');
  if (!(await mayList(options, signal))) return;
  const snapshots = new Informer<KubeObject>({
    transport,
    resource: volumeSnapshots,
    transform: cachedSnapshot,
    clock,
    logger,
    metrics,
  });
  const following = snapshots.run(signal);
  try {
    await waitForSync({ volumesnapshots: snapshots }, { signal, clock, logger });
    while (!signal.aborted) {
      await sweep(options, snapshots, signal);
      await clock.sleep(options.intervalMs, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await following;
  }
}

/** Only what the sweep reads is kept. */
function cachedSnapshot({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, finalizers } = metadata;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(finalizers === undefined ? {} : { finalizers }),
    },
  };
}

async function mayList({ client, logger }: SnapshotSweepOptions, signal: AbortSignal): Promise<boolean> {
  try {
    await client.list(volumeSnapshots, { limit: 1, signal, optional: true });
  } catch (error) {
    if (!(error instanceof ForbiddenError)) return !signal.aborted;
    logger.debug({ err: error }, 'Not permitted to list VolumeSnapshots: left-over protection is not swept');
    return false;
  }
  return true;
}

/** One pass over the cached snapshots, those of other drivers included. Never fails. */
async function sweep(options: SnapshotSweepOptions, snapshots: Lister<KubeObject>, signal: AbortSignal): Promise<void> {
  const { client, claims, plannedSources, logger } = options;
  const inUse = (): Set<string> => snapshotsInUse(claims.list(), plannedSources?.());
  const wanted = inUse();
  for (const { metadata } of [...snapshots.list()]) {
    if (sliceSpent()) await nextSlice();
    if (signal.aborted) return;
    const key = objectKey({ metadata });
    if (metadata.finalizers?.includes(snapshotProtectionFinalizer) !== true) continue;
    if (wanted.has(key)) {
      if (metadata.deletionTimestamp !== undefined) recordWaiting(options, { metadata });
      continue;
    }
    try {
      await removeFinalizer({
        client,
        resource: volumeSnapshots,
        object: { namespace: metadata.namespace ?? '', name: metadata.name },
        finalizer: snapshotProtectionFinalizer,
        optional: true,
        signal,
        check: () => {
          if (inUse().has(key)) throw new SnapshotNeededError();
        },
      });
      logger.info({ snapshot: key }, 'Removed left-over protection of a snapshot');
    } catch (error) {
      if (error instanceof SnapshotNeededError) continue;
      const fields = { snapshot: key, err: error };
      const message = 'Removing left-over protection of a snapshot failed';
      const expected =
        error instanceof NotFoundError || error instanceof ConflictError || error instanceof ForbiddenError;
      if (expected) logger.debug(fields, message);
      else logger.warn(fields, message);
    }
  }
}

/** Records an event on a snapshot that is being deleted: which claim it waits for. Once for all instances. */
function recordWaiting({ claims, plannedSources, recorder }: SnapshotSweepOptions, { metadata }: KubeObject): void {
  const { namespace, name, uid, resourceVersion } = metadata;
  const key = objectKey({ metadata });
  const about = {
    kind: volumeSnapshots.kind,
    apiVersion: apiVersion(volumeSnapshots),
    ...(namespace !== undefined && { namespace }),
    name,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
  for (const open of plannedSources?.() ?? []) {
    if (!snapshotsInUse([], [open]).has(key)) continue;
    const message =
      `Waiting until the volume of claim ${open.claim}, which is restored from this snapshot, is complete or certain not to exist; ` +
      'if that claim is gone and the snapshot remains, run: csi-provisioner journal list';
    recorder?.event(about, 'Normal', 'SnapshotProtectionWaiting', message, { once: true });
    return;
  }
  for (const claim of claims.list()) {
    if (!snapshotsInUse([claim]).has(key)) continue;
    const message = `Waiting until claim ${objectKey(claim)}, which is to be restored from this snapshot, is bound or deleted`;
    recorder?.event(about, 'Normal', 'SnapshotProtectionWaiting', message, { once: true });
    return;
  }
}

/** Keys of the snapshots that a claim still waits for, or from which a volume is being made. */
export function snapshotsInUse(
  claims: Iterable<PersistentVolumeClaim>,
  plannedSources: Iterable<OpenSource> = [],
): Set<string> {
  const keys = new Set<string>();
  for (const { source } of plannedSources)
    if (source.handling === 'snapshot') keys.add(objectKey({ metadata: source }));
  for (const { metadata, spec, status } of claims) {
    const phase = status?.phase ?? '';
    if (phase !== '' && phase !== 'Pending') continue;
    const source = spec.dataSource ?? spec.dataSourceRef;
    if (source?.kind !== 'VolumeSnapshot') continue;
    if ((source.apiGroup ?? snapshotGroup) !== snapshotGroup) continue;
    const named = spec.dataSource === undefined ? (spec.dataSourceRef?.namespace ?? '') : '';
    const namespace = named === '' ? metadata.namespace : named;
    keys.add(objectKey({ metadata: { namespace, name: source.name } }));
  }
  return keys;
}
