import { deletionPostponedReason, untilDetachedText } from '../provision/event-reasons.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { VolumeInUseError } from '../provision/provisioner.ts';
import { attachmentsByVolume } from './attachments.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';

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
