import { attachedVolume, attachmentsByVolume, type VolumeAttachment, volumeAttachments } from '../csi/attachments.ts';
import { Informer, Tombstone } from '../kube/informer.ts';
import type { Lister } from '../kube/lister.ts';
import { withoutManagedFields } from '../provision/informers.ts';
import type { RunPhaseOptions } from './run-phase-options.ts';

/**
 * The VolumeAttachments that hold deletions back, for as long as the driver says that it attaches volumes. Empty for all
 * other drivers; a driver that comes back as another version may begin to attach, or cease to.
 */
export class AttachmentCache implements Lister<VolumeAttachment> {
  readonly #options: RunPhaseOptions;
  readonly #onDetached: (volumeName: string) => void;
  #informer: Informer<VolumeAttachment> | undefined;

  /** @param onDetached - called when an attachment of a volume was deleted, or counts no longer. */
  constructor(options: RunPhaseOptions, onDetached: (volumeName: string) => void) {
    this.#options = options;
    this.#onDetached = onDetached;
    if (options.driver.capabilities.publishUnpublishVolume) return;
    options.logger.info({}, 'CSI driver does not support PUBLISH_UNPUBLISH_VOLUME, not watching VolumeAttachments');
  }

  /** The cache that must run from now on, once; undefined while the driver does not attach volumes, and after that. */
  needed(): Informer<VolumeAttachment> | undefined {
    const { driver, transport, metrics, clock, logger } = this.#options;
    if (this.#informer !== undefined || !driver.capabilities.publishUnpublishVolume) return undefined;
    logger.info({}, 'CSI driver supports PUBLISH_UNPUBLISH_VOLUME, watching VolumeAttachments');
    this.#informer = new Informer<VolumeAttachment>({
      transport,
      resource: volumeAttachments,
      metrics: metrics.reflector(volumeAttachments.plural),
      transform: withoutManagedFields<VolumeAttachment>,
      indexers: { [attachmentsByVolume]: attachedVolume },
      clock,
      logger,
    });
    this.#informer.addHandler({
      onDelete: (gone) => {
        const attachment = gone instanceof Tombstone ? gone.object : gone;
        for (const name of attachedVolume(attachment)) this.#onDetached(name);
      },
    });
    return this.#informer;
  }

  /** The driver came back: where it ceased to attach volumes none waits for an attachment any longer. */
  release(): void {
    if (this.#options.driver.capabilities.publishUnpublishVolume) return;
    for (const attachment of this.#informer?.list() ?? []) attachedVolume(attachment).forEach(this.#onDetached);
  }

  /** @throws {Error} while the driver attaches volumes and the cache is not filled: nothing may be deleted then. */
  get(key: string): VolumeAttachment | undefined {
    return this.#filled()?.get(key);
  }

  /** @throws as `get`. */
  list(): Iterable<VolumeAttachment> {
    return this.#filled()?.list() ?? [];
  }

  /** @throws as `get`. */
  byIndex(indexName: string, value: string): VolumeAttachment[] {
    return this.#filled()?.byIndex(indexName, value) ?? [];
  }

  #filled(): Informer<VolumeAttachment> | undefined {
    if (!this.#options.driver.capabilities.publishUnpublishVolume) return undefined;
    if (this.#informer?.hasSynced === true) return this.#informer;
    const why = this.#informer?.lastError === undefined ? '' : `: ${this.#informer.lastError.message}`;
    throw new Error(`VolumeAttachments could not be read yet${why}`);
  }
}
