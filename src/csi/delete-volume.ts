import { type Permit, whenPermitted } from '../base/permit.ts';
import type { SecretString } from '../base/secret-string.ts';
import { deletionPostponedReason, untilDetachedText } from '../provision/event-reasons.ts';
import { betaStorageClassKey, type PersistentVolume, type SecretReference } from '../provision/objects.ts';
import { IgnoredError, type ProvisionContext, VolumeInUseError } from '../provision/provisioner.ts';
import { deletionSecretName, deletionSecretNamespace } from './create/persistent-volume.ts';
import { attachmentsByVolume } from './attachments.ts';
import { CsiCallError, errorMessage, grpcCodes } from './call-error.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { missingCapability } from './driver-info.ts';
import type { BeforeDelete } from './error-policy.ts';
import { readSecret } from './secrets/read-secret.ts';
import { secretReference } from './secrets/secret-reference.ts';

/**
 * Deletes the driver's volume behind a PersistentVolume (CSI spec, `DeleteVolume`). Nothing is changed before the
 * call; a repeat is safe, since drivers return OK for a volume that is gone.
 *
 * @throws {IgnoredError} when the volume belongs to another node.
 * @throws {VolumeInUseError} when it is still attached to one.
 * @throws {Error} for everything else; its text becomes the volume's event.
 */
export async function deleteVolume(
  settings: CsiProvisionerOptions,
  volume: PersistentVolume,
  { gate, signal, permit }: ProvisionContext & { gate: AttachmentGate },
): Promise<void> {
  const translated = settings.migration?.toCsi(volume) ?? volume;
  const migrated = translated !== volume;
  const { csi } = translated.spec;
  if (csi === undefined) throw new Error('invalid CSI PV');
  if (csi.driver !== settings.driverName) throw new Error(`the storage of the PV is of CSI driver ${csi.driver}`);
  if (settings.node?.ownsVolume(translated) === false) throw new IgnoredError('PV was not provisioned on this node');
  const missing = missingCapability(settings.capabilities());
  if (missing !== undefined) throw new Error(missing);
  const secrets = await deletionSecrets(settings, translated, { migrated, signal });
  const about = { volume: volume.metadata.name };
  await whenPermitted(permit, signal, (recheckPermit) => {
    gate.check(volume.metadata.name);
    const recheck = (): void => {
      recheckPermit();
      gate.check(volume.metadata.name);
    };
    const call = { signal, migrated, about, recheck };
    return settings.controller.deleteVolume({ volume_id: csi.volumeHandle, secrets }, call);
  });
}

/**
 * Secrets for a deletion. One that cannot be read is logged and the deletion goes on without it: the driver decides
 * whether it is needed.
 */
async function deletionSecrets(
  settings: CsiProvisionerOptions,
  volume: PersistentVolume,
  options: { migrated: boolean; signal: AbortSignal },
): Promise<Record<string, SecretString>> {
  const { client, logger } = settings;
  const reference = deletionReference(settings, volume, options.migrated);
  if (reference === undefined) return {};
  try {
    return await readSecret(client, reference, { signal: options.signal });
  } catch (error) {
    options.signal.throwIfAborted();
    logger.error(
      { err: error, volume: volume.metadata.name },
      'Reading the deletion secret failed, deleting the volume without it',
    );
    return {};
  }
}

function deletionReference(
  settings: CsiProvisionerOptions,
  volume: PersistentVolume,
  migrated: boolean,
): SecretReference | undefined {
  const name = volume.metadata.annotations?.[deletionSecretName];
  const namespace = volume.metadata.annotations?.[deletionSecretNamespace];
  // Only volumes that were not made by this provisioner lack the keys; empty ones mean "no secret".
  if (name === undefined || namespace === undefined) return referenceFromClass(settings, volume, migrated);
  return name === '' || namespace === '' ? undefined : { name, namespace };
}

function referenceFromClass(
  { classes, logger, migration }: CsiProvisionerOptions,
  volume: PersistentVolume,
  migrated: boolean,
): SecretReference | undefined {
  const { name: volumeName, annotations } = volume.metadata;
  const className = annotations?.[betaStorageClassKey] ?? volume.spec.storageClassName ?? '';
  if (className === '') return undefined;
  const given = classes.get(className);
  if (given === undefined) {
    logger.warn({ volume: volumeName, class: className }, 'The class of the volume is gone, deleting without secrets');
    return undefined;
  }
  const storageClass = (migrated ? migration?.translateClass(given) : undefined) ?? given;
  const { claimRef } = volume.spec;
  if (claimRef === undefined) {
    logger.warn({ volume: volumeName }, 'The volume has no claim reference, deleting without secrets');
    return undefined;
  }
  const claim = { namespace: claimRef.namespace ?? '', name: claimRef.name ?? '' };
  try {
    return secretReference('provisioner', storageClass.parameters ?? {}, { volumeName, claim }, logger);
  } catch (error) {
    throw new Error(`failed to get secretreference for volume ${volumeName}: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * Proves that a volume may be deleted, and has it deleted at once. Proves it again where the process was paused meanwhile, and once where
 * the call had to wait for a connection.
 *
 * @param send - its call has the given `recheck`.
 * @throws what `beforeDelete`, the renewal of the permit and `send` throw.
 */
export async function deleteProved<T>(
  {
    volumeId,
    beforeDelete,
    permit,
    signal,
  }: {
    volumeId: string;
    beforeDelete: BeforeDelete;
    permit?: Permit | undefined;
    signal?: AbortSignal | undefined;
  },
  send: (recheck: () => void) => Promise<T>,
): Promise<T> {
  for (let hasWaited = false; ;) {
    await beforeDelete(volumeId);
    if (permit?.isValid === false) {
      await permit.renewed(signal);
      continue;
    }
    let isOld = false as boolean;
    const recheck = (): void => {
      isOld = true;
      const why = 'the connection to the CSI driver was replaced before the call was sent';
      throw new CsiCallError(grpcCodes.Unavailable, why, { sent: false });
    };
    try {
      return await send(recheck);
    } catch (error) {
      if (!isOld || hasWaited) throw error;
      hasWaited = true;
    }
  }
}

/**
 * Keeps attached volumes from being deleted. Any VolumeAttachment counts, whatever its attacher and status; without a
 * cache of attachments no deletion waits.
 */
export class AttachmentGate {
  readonly #options: Pick<CsiProvisionerOptions, 'attachments' | 'node' | 'migration' | 'recorder'>;
  /** Names by UID of volumes whose wait was recorded; kept only while they are attached. */
  readonly #waiting = new Map<string, string>();

  constructor(options: Pick<CsiProvisionerOptions, 'attachments' | 'node' | 'migration' | 'recorder'>) {
    this.#options = options;
  }

  /**
   * Whether the deletion of a released volume must wait: then one Normal event is recorded, and the deletion of the
   * attachment requeues the volume, without a back-off. Other volumes never wait, nor do those of other nodes: their own
   * instance records the event.
   */
  mustWait(volume: PersistentVolume): boolean {
    const due = volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
    const why = due ? this.#stillAttached(volume.metadata.name) : undefined;
    const uid = volume.metadata.uid ?? '';
    if (why === undefined || !this.#isOfThisNode(volume)) {
      this.#waiting.delete(uid);
      return false;
    }
    if (!this.#waiting.has(uid)) {
      this.#forgetDetached();
      this.#waiting.set(uid, volume.metadata.name);
      const about = { apiVersion: 'v1', kind: 'PersistentVolume', name: volume.metadata.name, uid };
      this.#options.recorder.event(about, 'Normal', deletionPostponedReason, why);
    }
    return true;
  }

  /** The last check before DeleteVolume. @throws {VolumeInUseError} when the volume is attached. */
  check(volumeName: string): void {
    const why = this.#stillAttached(volumeName);
    if (why !== undefined) throw new VolumeInUseError(why);
  }

  #stillAttached(volumeName: string): string | undefined {
    const [attachment] = this.#options.attachments?.byIndex(attachmentsByVolume, volumeName) ?? [];
    if (attachment === undefined) return undefined;
    const node = attachment.spec?.nodeName ?? '';
    return `persistentvolume ${volumeName} is still attached to node ${node}${untilDetachedText}`;
  }

  #isOfThisNode(volume: PersistentVolume): boolean {
    const { node, migration } = this.#options;
    try {
      return node?.ownsVolume(migration?.toCsi(volume) ?? volume) ?? true;
    } catch {
      return false; // the deletion fails on it, too, and records why
    }
  }

  /** Volumes that were deleted while attached get no further sync. */
  #forgetDetached(): void {
    for (const [uid, name] of this.#waiting) {
      if (this.#stillAttached(name) === undefined) this.#waiting.delete(uid);
    }
  }
}
