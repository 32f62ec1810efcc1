import type { PersistentVolume } from '../provision/objects.ts';
import { stillAttached } from './attachments.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';

/**
 * Holds deletions back while the volume is attached. The first look tells people with one Normal event; the deletion
 * goes on when the attachment is deleted, not after a back-off.
 */
export class WaitForDetach {
  readonly #options: Pick<CsiProvisionerOptions, 'attachments' | 'node' | 'migration' | 'recorder'>;
  /** Names by UID of volumes whose event was sent; kept only while they are attached. */
  readonly #told = new Map<string, string>();

  constructor(options: Pick<CsiProvisionerOptions, 'attachments' | 'node' | 'migration' | 'recorder'>) {
    this.#options = options;
  }

  /**
   * Whether a volume that is due for deletion must be left alone for now. Other volumes never wait, nor do those of
   * other nodes: their own instance tells.
   */
  mustWait(volume: PersistentVolume): boolean {
    const { attachments, recorder } = this.#options;
    const due = volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
    const why = due && attachments !== undefined ? stillAttached(attachments, volume.metadata.name) : undefined;
    const uid = volume.metadata.uid ?? '';
    if (why === undefined || !this.#isOfThisNode(volume)) {
      this.#told.delete(uid);
      return false;
    }
    if (!this.#told.has(uid)) {
      this.#forgetDetached(attachments);
      this.#told.set(uid, volume.metadata.name);
      const about = { apiVersion: 'v1', kind: 'PersistentVolume', name: volume.metadata.name, uid };
      recorder.event(about, 'Normal', 'VolumeDeletionWaiting', why);
    }
    return true;
  }

  #isOfThisNode(volume: PersistentVolume): boolean {
    const { node, migration } = this.#options;
    try {
      return node?.ownsVolume(migration?.toCsi(volume) ?? volume) ?? true;
    } catch {
      return false; // the deletion meets it, too, and tells
    }
  }

  /** Volumes that went away while attached are never looked at again. */
  #forgetDetached(attachments: CsiProvisionerOptions['attachments']): void {
    for (const [uid, name] of this.#told) {
      if (attachments === undefined || stillAttached(attachments, name) === undefined) this.#told.delete(uid);
    }
  }
}
