/** Checks of a snapshot that a new volume is to be restored from (Kubernetes, "Volume Snapshots"). */
import { parseGoBool } from '../../base/go-bool.ts';
import type { Logger } from '../../base/logger.ts';
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import { ForbiddenError, isUnservedResource, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import {
  apiVersion,
  type KubeObject,
  type ObjectName,
  type ObjectReference,
  type Resource,
} from '../../kube/kube-object.ts';
import type { PersistentVolumeClaim, QuantityText, StorageClass } from '../../provision/objects.ts';
import { storageRequestBytes } from '../../provision/claim-fields.ts';
import { errorMessage } from '../call-error.ts';
import { type DataSource, snapshotGroup } from './data-source.ts';
import { addFinalizer, type FinalizerChange, removeFinalizer, snapshotProtectionFinalizer } from './finalizers.ts';

/** On a VolumeSnapshotContent: a restore may change the volume mode. */
const allowVolumeModeChangeKey = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';

interface RestoreOptions {
  client: KubeClient;
  logger: Logger;
  /** The new claim. */
  claim: PersistentVolumeClaim;
  source: DataSource;
  /** The (translated) class: the snapshot's content must be of its driver. */
  storageClass: StorageClass;
  preventVolumeModeConversion: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Reads the snapshot and its content, live.
 *
 * @returns the driver's id of the snapshot, and the UID of the object.
 * @throws {Error} for the first check that fails; the caller adds where it happened.
 */
export async function snapshotHandle(options: RestoreOptions): Promise<{ handle: string; uid: string }> {
  const { client, claim, source, signal } = options;
  const name = shortValue(source.name);
  const snapshot = await readSnapshot(options);
  const { uid = '', deletionTimestamp, finalizers = [] } = snapshot.metadata;
  // With our finalizer on it an earlier attempt began before the deletion, and may go on.
  if (deletionTimestamp !== undefined && !finalizers.includes(snapshotProtectionFinalizer)) {
    throw new Error(`snapshot ${name} is being deleted`);
  }
  const contentName = snapshot.status?.boundVolumeSnapshotContentName ?? '';
  if (contentName === '') throw new Error(`snapshot ${name} not bound`);
  let content: VolumeSnapshotContent;
  try {
    content = await client.get<VolumeSnapshotContent>(volumeSnapshotContents, { name: contentName }, { signal });
  } catch (error) {
    options.logger.warn(
      { err: error, snapshotContent: shortValue(contentName) },
      'Reading the snapshot content failed',
    );
    throw new Error(`error getting snapshotcontent ${shortValue(contentName)} for snapshot ${name}`, { cause: error });
  }
  const handle = checkContent(content, snapshot, options);
  checkSize(snapshot, claim);
  if (options.preventVolumeModeConversion) checkVolumeModeConversion(content, claim);
  return { handle, uid };
}

async function readSnapshot({ client, source, signal }: RestoreOptions): Promise<VolumeSnapshot> {
  try {
    return await client.get<VolumeSnapshot>(volumeSnapshots, source, { signal });
  } catch (error) {
    const why = isUnservedResource(error)
      ? `the API ${apiVersion(volumeSnapshots)} is not installed in the cluster`
      : errorMessage(error);
    throw new Error(`error getting snapshot ${shortValue(source.name)} from api server: ${why}`, { cause: error });
  }
}

function checkContent(
  content: VolumeSnapshotContent,
  snapshot: VolumeSnapshot,
  { storageClass }: RestoreOptions,
): string {
  const { name, namespace, uid } = snapshot.metadata;
  const where = `snapshotcontent ${content.metadata.name} for snapshot ${name}`;
  const bound = content.spec?.volumeSnapshotRef;
  if (bound?.uid !== uid || bound?.namespace !== namespace || bound?.name !== name) {
    throw new Error(`${where} is bound to a different snapshot`);
  }
  if (content.spec?.driver !== storageClass.provisioner) {
    throw new Error(`${where} is not handled by CSI driver of StorageClass ${storageClass.metadata.name}`);
  }
  if (snapshot.status?.readyToUse !== true) throw new Error(`snapshot ${name} is not Ready`);
  const handle = content.status?.snapshotHandle;
  if (handle === undefined) throw new Error(`snapshot handle ${name} is not available`);
  return handle;
}

/** The restore size is a lower bound: drivers report anything from a few bytes to the volume's size. */
function checkSize(snapshot: VolumeSnapshot, claim: PersistentVolumeClaim): void {
  const restoreSize = snapshot.status?.restoreSize;
  if (restoreSize === undefined) return;
  const { name } = snapshot.metadata;
  if (claim.spec.resources?.requests?.['storage'] === undefined) {
    throw new Error(`error getting capacity for PVC ${claim.metadata.name} when creating snapshot ${name}`);
  }
  const requested = storageRequestBytes(claim);
  const least = quantityBytes(restoreSize);
  if (requested < least) {
    throw new Error(
      `requested volume size ${requested} is less than the size ${least} for the source snapshot ${name}`,
    );
  }
}

interface SnapshotProtection {
  client: KubeClient;
  logger: Logger;
  snapshot: ObjectName;
  signal?: AbortSignal | undefined;
}

/**
 * Adds the finalizer that protects the snapshot while it is restored. Without permission to write snapshots the restore
 * goes on unprotected.
 *
 * @param options.uid - of the snapshot that was read; undefined: not known.
 * @throws `ApiError` as the server gave it, but for Forbidden on the write, and {Error} when another snapshot has the name now.
 */
export async function protectSnapshot(options: SnapshotProtection & { uid?: string | undefined }): Promise<void> {
  const { logger, snapshot, uid } = options;
  const check = (live: VolumeSnapshot): void => {
    if (uid !== undefined && (live.metadata.uid ?? '') !== uid)
      throw new Error(`the VolumeSnapshot ${snapshot.name} was replaced by another of the same name`);
  };
  try {
    await addFinalizer({ ...protection(options), check });
  } catch (error) {
    if (!(error instanceof ForbiddenError && error.request.verb === 'update')) throw error;
    logger.debug({ err: error, snapshot }, 'Not permitted to protect the snapshot, continuing without protection');
  }
}

/** Removes the protection, unless it is needed. Never fails: the sweep removes a finalizer that is left. */
export async function unprotectSnapshot(options: SnapshotProtection & { isNeeded: () => boolean }): Promise<void> {
  const { logger, snapshot, isNeeded } = options;
  const check = (): void => {
    if (isNeeded()) throw new SnapshotNeededError();
  };
  try {
    await removeFinalizer({ ...protection(options), check });
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof SnapshotNeededError) return;
    const message = 'Removing the protection of the snapshot failed';
    if (error instanceof ForbiddenError) logger.debug({ err: error, snapshot }, message);
    else logger.warn({ err: error, snapshot }, message);
  }
}

/** Thrown while a finalizer is being removed: something that relies on it came in the meantime. */
export class SnapshotNeededError extends Error {
  override readonly name = 'SnapshotNeededError';
}

function protection({ client, snapshot, signal }: SnapshotProtection): FinalizerChange<VolumeSnapshot> {
  return {
    client,
    resource: volumeSnapshots,
    object: snapshot,
    finalizer: snapshotProtectionFinalizer,
    optional: true,
    signal,
  };
}

/**
 * Refuses a restore that would convert a filesystem to a block device, or the reverse, unless the content's annotation
 * allows it (Kubernetes CSI documentation, "Prevent unauthorised conversion of source volume mode"). Nothing is refused
 * where one of the modes is not known.
 *
 * @throws {Error} that says why there is no permission.
 */
function checkVolumeModeConversion(content: VolumeSnapshotContent, claim: PersistentVolumeClaim): void {
  const source = content.spec?.sourceVolumeMode;
  const requested = claim.spec.volumeMode;
  if (source === undefined || requested === undefined || source === requested) return;
  const { name, namespace = '' } = claim.metadata;
  const refuse = (why: string): Error =>
    new Error(
      `requested volume ${namespace}/${name} modifies the mode of the source volume but does not have permission to do so. ${why}`,
    );
  const value = content.metadata.annotations?.[allowVolumeModeChangeKey];
  if (value === undefined) {
    throw refuse(`${allowVolumeModeChangeKey} annotation is not present on snapshotcontent ${content.metadata.name}`);
  }
  let isAllowed: boolean;
  try {
    isAllowed = parseGoBool(value);
  } catch (error) {
    const { message } = error as Error;
    throw refuse(`failed to convert ${allowVolumeModeChangeKey} annotation value to boolean with error: ${message}`);
  }
  if (isAllowed) return;
  throw refuse(`${allowVolumeModeChangeKey} is set to false on snapshotcontent ${content.metadata.name}`);
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshot: the fields a restore reads. */
export interface VolumeSnapshot extends KubeObject {
  status?: { boundVolumeSnapshotContentName?: string; readyToUse?: boolean; restoreSize?: QuantityText };
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshotContent: the fields a restore reads. */
export interface VolumeSnapshotContent extends KubeObject {
  spec?: { driver?: string; volumeSnapshotRef?: ObjectReference; sourceVolumeMode?: string };
  status?: { snapshotHandle?: string };
}

export const volumeSnapshots: Resource = {
  group: snapshotGroup,
  version: 'v1',
  plural: 'volumesnapshots',
  kind: 'VolumeSnapshot',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'update'],
};

export const volumeSnapshotContents: Resource = {
  group: snapshotGroup,
  version: 'v1',
  plural: 'volumesnapshotcontents',
  kind: 'VolumeSnapshotContent',
  namespaced: false,
};
