import { once } from 'node:events';
import { attachedVolume, attachmentInformer, type VolumeAttachment } from '../../csi/attachments.ts';
import { untilCapable } from '../../csi/driver-info.ts';
import { type Informer, Tombstone } from '../../kube/cache/informer.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { Caches } from '../../run/health.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

/**
 * The VolumeAttachments that delay deletions, while the driver reports PUBLISH_UNPUBLISH_VOLUME. Empty for all other
 * drivers; the capability may come or go when the driver reconnects as another version.
 */
export class Attachments implements Pick<Lister<VolumeAttachment>, 'byIndex'>, Feature {
  /** At the start; undefined while the driver does not attach volumes. */
  readonly caches: Caches | undefined;
  readonly #options: FeatureOptions;
  readonly #listeners = new Set<(volumeName: string) => void>();
  #informer: Informer<VolumeAttachment> | undefined;

  constructor(options: FeatureOptions) {
    this.#options = options;
    if (options.driver.capabilities.publishUnpublishVolume) this.caches = this.#watch();
    else
      options.logger.info({}, 'CSI driver does not support PUBLISH_UNPUBLISH_VOLUME, not watching VolumeAttachments');
  }

  /** Calls the listener with the name of the volume whenever an attachment was deleted, or no longer counts. */
  onDetached(listener: (volumeName: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Starts the cache when the driver reconnects with the capability. */
  async follow(signal: AbortSignal): Promise<void> {
    const { driver, caches } = this.#options;
    using _back = driver.onReconnected(() => this.#release());
    if (this.#informer === undefined) {
      await untilCapable(driver, ({ publishUnpublishVolume }) => publishUnpublishVolume, signal);
      caches.need(this.#watch());
    }
    if (!signal.aborted) await once(signal, 'abort');
  }

  /** Without the capability no volume waits for an attachment any longer. */
  #release(): void {
    if (this.#options.driver.capabilities.publishUnpublishVolume) return;
    for (const attachment of this.#informer?.list() ?? []) this.#notify(attachment);
  }

  #notify(attachment: VolumeAttachment): void {
    for (const name of attachedVolume(attachment)) for (const listener of this.#listeners) listener(name);
  }

  #watch(): Caches {
    const { transport, metrics, clock, logger } = this.#options;
    logger.info({}, 'CSI driver supports PUBLISH_UNPUBLISH_VOLUME, watching VolumeAttachments');
    const attachments = attachmentInformer({
      transport,
      metrics: (resource) => metrics.reflector(resource),
      clock,
      logger,
    });
    attachments.addHandler({
      onDelete: (gone) => this.#notify(gone instanceof Tombstone ? gone.object : gone),
    });
    this.#informer = attachments;
    return { attachments };
  }

  /** @throws {Error} while the driver attaches volumes and the cache is not filled: nothing may be deleted then. */
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
