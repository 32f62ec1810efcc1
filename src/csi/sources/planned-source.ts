/** The source of a volume's content: checked for the plan, protected before the driver copies it. */
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../provision/objects.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { errorMessage } from '../call-error.ts';
import { failingAs } from '../error-policy.ts';
import type { VolumeContentSource } from '../generated/csi/v1/VolumeContentSource.ts';
import { cloneSource, protectCloneSource } from './clone-source.ts';
import type { ContentSource, PlannedSource } from './data-source.ts';
import { protectSnapshot, snapshotHandle, unprotectSnapshot } from './snapshot-source.ts';

type Settings = Pick<CsiProvisionerOptions, 'client' | 'claims' | 'logger' | 'preventVolumeModeConversion'>;

/**
 * Checks the source; nothing is written.
 *
 * @throws {ProvisionError} state `no-change` for the first check that fails.
 */
export async function planSource(
  settings: Settings,
  claim: PersistentVolumeClaim,
  from: { source: ContentSource | undefined; storageClass: StorageClass; signal: AbortSignal },
): Promise<{ source: PlannedSource; sourceUid: string; volumeContentSource: VolumeContentSource } | undefined> {
  const { client, claims, logger, preventVolumeModeConversion } = settings;
  const { source, storageClass, signal } = from;
  if (source === undefined) return undefined;
  const { kind, namespace, name } = source;
  const describe = (error: unknown): string =>
    `error getting handle for DataSource Type ${shortValue(kind)} by Name ${shortValue(name)}: ${errorMessage(error)}`;
  if (source.handling === 'clone') {
    const driverName = storageClass.provisioner;
    const { uid, volumeHandle } = await failingAs(
      'no-change',
      () => cloneSource({ client, claims, claim, source, driverName, signal }),
      describe,
    );
    const volumeContentSource = { volume: { volume_id: volumeHandle } };
    return { source: { handling: 'clone', namespace, name, uid }, sourceUid: uid, volumeContentSource };
  }
  const { handle, uid } = await failingAs(
    'no-change',
    () => snapshotHandle({ client, logger, claim, source, storageClass, preventVolumeModeConversion, signal }),
    describe,
  );
  return {
    source: { handling: 'snapshot', namespace, name },
    sourceUid: uid,
    volumeContentSource: { snapshot: { snapshot_id: handle } },
  };
}

/**
 * Adds the finalizer that protects the source. Safe to repeat.
 *
 * @param snapshotUid - of the snapshot as this process read it, which the plan does not record; undefined: not checked.
 * @throws {ProvisionError} state `no-change` when it could not be written, or another object has the name of the source now.
 */
export async function protectSource(
  { client, claims, logger }: Settings,
  source: PlannedSource | undefined,
  signal: AbortSignal,
  snapshotUid?: string,
): Promise<void> {
  if (source === undefined) return;
  await failingAs('no-change', () =>
    source.handling === 'clone'
      ? protectCloneSource(source, { client, claims, signal })
      : protectSnapshot({ client, logger, snapshot: source, uid: snapshotUid, signal }),
  );
}

/**
 * Protects a source that may be unprotected: an earlier process may have ended between writing the record and setting the finalizer, or
 * a process on another node may have removed it after restoring the same snapshot. A source that is gone, is
 * being deleted or must not be changed does not fail the volume, which may exist already. Safe to repeat.
 */
export async function protectFoundSource(
  settings: Settings,
  source: PlannedSource | undefined,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (source?.handling === 'clone' && !mayBeProtected(source, settings)) return;
    await protectSource(settings, source, signal);
  } catch (error) {
    signal.throwIfAborted();
    settings.logger.debug({ err: error, source }, 'The source of a recorded volume is not protected');
  }
}

/** Kubernetes rejects new finalizers on an object that is being deleted. */
function mayBeProtected({ namespace, name, uid }: PlannedSource & { uid: string }, { claims }: Settings): boolean {
  const cached = claims.get(`${namespace}/${name}`)?.metadata;
  return cached?.uid === uid && cached.deletionTimestamp === undefined;
}

/**
 * Removes the protection from a snapshot that was restored. The sources of clones keep it until they are deleted, and
 * sources in other namespaces until the sweep of their provisioner. Never fails.
 *
 * @param options.isNeeded - whether something else is being made from the snapshot; called again directly before the write.
 */
export async function unprotectSource(
  { client, logger }: Pick<Settings, 'client' | 'logger'>,
  source: PlannedSource | undefined,
  { claimNamespace, isNeeded, signal }: { claimNamespace: string; isNeeded: () => boolean; signal: AbortSignal },
): Promise<void> {
  if (source?.handling !== 'snapshot' || source.namespace !== claimNamespace || isNeeded()) return;
  await unprotectSnapshot({ client, logger, snapshot: source, isNeeded, signal });
}
