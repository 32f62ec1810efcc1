import type { Logger } from '../base/logger.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../provision/objects.ts';
import {
  IgnoredError,
  ProvisionError,
  type Provisioner,
  type ProvisionContext,
  type ProvisionOptions,
} from '../provision/provisioner.ts';
import type { CapacityController } from './capacity-controller.ts';
import { segmentOfTerm } from './segment.ts';

/**
 * Another provisioner, whose successes and failures tell that a capacity has changed, or is not what it was thought to
 * be: the driver is then asked again.
 */
export class RefreshingProvisioner implements Provisioner {
  readonly #inner: Provisioner;
  readonly #capacity: Pick<CapacityController, 'refreshClass' | 'refreshSegment'>;
  readonly #logger: Logger;

  constructor(options: {
    provisioner: Provisioner;
    capacity: Pick<CapacityController, 'refreshClass' | 'refreshSegment'>;
    logger: Logger;
  }) {
    this.#inner = options.provisioner;
    this.#capacity = options.capacity;
    this.#logger = options.logger;
  }

  /** @throws what the other one throws. */
  async provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    const className = options.storageClass.metadata.name;
    let volume: PersistentVolume;
    try {
      volume = await this.#inner.provision(options, context);
    } catch (error) {
      if (sawTheDriver(error)) this.#capacity.refreshClass(className);
      throw error;
    }
    // Without affinity the room may have come from anywhere.
    if (volume.spec.nodeAffinity === undefined) this.#capacity.refreshClass(className);
    else this.#refreshSegmentsOf(volume);
    return volume;
  }

  /** @throws what the other one throws. */
  async delete(volume: PersistentVolume, context: ProvisionContext): Promise<void> {
    await this.#inner.delete(volume, context);
    if (volume.spec.nodeAffinity !== undefined) this.#refreshSegmentsOf(volume);
  }

  shouldProvision(claim: PersistentVolumeClaim, context: ProvisionContext): boolean | Promise<boolean> {
    return this.#inner.shouldProvision?.(claim, context) ?? true;
  }

  supportsBlock(context: ProvisionContext): boolean {
    return this.#inner.supportsBlock?.(context) ?? false;
  }

  shouldDelete(volume: PersistentVolume, context: ProvisionContext): boolean | Promise<boolean> {
    return this.#inner.shouldDelete?.(volume, context) ?? true;
  }

  forget(claimUid: string): void {
    this.#inner.forget?.(claimUid);
  }

  #refreshSegmentsOf({ metadata: { name }, spec: { nodeAffinity } }: PersistentVolume): void {
    const terms = nodeAffinity?.required?.nodeSelectorTerms ?? [];
    const segments = terms.flatMap((term) => segmentOfTerm(term) ?? []);
    for (const segment of segments) this.#capacity.refreshSegment(segment);
    if (segments.length === terms.length && terms.length > 0) return;
    this.#logger.warn(
      { volume: name },
      'The node affinity of a volume names no segment, its capacity is not refreshed',
    );
  }
}

/** Whether the attempt got as far as telling something about the backend. */
function sawTheDriver(error: unknown): boolean {
  if (error instanceof IgnoredError) return false;
  return !(error instanceof ProvisionError) || error.state !== 'no-change';
}
