/** Provisioning through a CSI driver: the `Provisioner` that the controller calls. */
import { goQuote } from '../base/go-quote.ts';
import { objectKey } from '../kube/kube-object.ts';
import { claimReference, requestedProvisioner } from '../provision/claim-facts.ts';
import { migratedToKey } from '../provision/keys.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../provision/objects.ts';
import {
  IgnoredError,
  type Provisioner,
  type ProvisionContext,
  type ProvisionOptions,
} from '../provision/provisioner.ts';
import { AttachmentGate } from './attachment-gate.ts';
import { planVolume } from './create-request.ts';
import { createVolume } from './create-volume.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { deleteVolume } from './delete-volume.ts';
import { errorMessage } from './error-message.ts';
import { failingAs } from './failing-as.ts';
import { PopulatorError } from './validate-claim.ts';

/**
 * Makes and deletes volumes with a CSI driver. Every method may be called again for the same claim or volume: names
 * and requests stay the same.
 */
export class CsiProvisioner implements Provisioner {
  readonly #options: CsiProvisionerOptions;
  readonly #attachmentGate: AttachmentGate;
  /** UIDs of claims whose volume the driver may be creating: a repeat must request the same topology. */
  readonly #inBackground = new Set<string>();

  constructor(options: CsiProvisionerOptions) {
    this.#options = options;
    this.#attachmentGate = new AttachmentGate(options);
  }

  /** Whether the claim was handed to this driver; in node deployment also whether it is for this node. */
  async shouldProvision(claim: PersistentVolumeClaim): Promise<boolean> {
    try {
      return (await this.#whyNotOurs(claim)) === undefined;
    } catch (error) {
      // provisioning checks again and then records the failure as an event
      this.#options.logger.info({ err: error, claim: objectKey(claim) }, 'Node check failed');
      return true;
    }
  }

  /** @throws {ProvisionError} and {IgnoredError} as the interface says; the texts are those of the reference. */
  provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    // Every step gives its failure a state; after an unforeseen exception a volume may be in the making.
    return failingAs('in-background', () => this.#provision(options, context));
  }

  async #provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    const { claim, storageClass } = options;
    const reason = await failingAs(
      'no-change',
      () => this.#whyNotOurs(claim, storageClass),
      (error) => `node check failed: ${errorMessage(error)}`,
    );
    if (reason !== undefined) throw new IgnoredError(reason);
    const { plan, secrets } = await planVolume(this.#options, options, context).catch((error: unknown) => {
      if (error instanceof PopulatorError) this.#recordPopulator(claim);
      throw error;
    });
    return createVolume(this.#options, plan, { ...context, secrets, inBackground: this.#inBackground });
  }

  async delete(volume: PersistentVolume, context: ProvisionContext): Promise<void> {
    await deleteVolume(this.#options, volume, { ...context, gate: this.#attachmentGate });
  }

  /** No while a released volume is still attached: the deletion of its last attachment must requeue the volume. */
  shouldDelete(volume: PersistentVolume): boolean {
    return !this.#attachmentGate.mustWait(volume);
  }

  /** Drops what was kept for retries of the claim. */
  forget(claimUid: string): void {
    this.#inBackground.delete(claimUid);
    this.#inBackground.delete(claimUid);
    this.#options.topology?.forget(claimUid);
    this.#options.node?.forgetClaim(claimUid);
  }

  /** Always: a driver that cannot do it refuses CreateVolume. */
  supportsBlock(): boolean {
    return true;
  }

  /**
   * @param storageClass - of a claim that is about to be provisioned, see `NodeHook.ownsClaim`.
   * @returns nothing when the claim is for this driver and, in node deployment, for this node.
   */
  async #whyNotOurs(claim: PersistentVolumeClaim, storageClass?: StorageClass): Promise<string | undefined> {
    const { driverName, node } = this.#options;
    const requested = requestedProvisioner(claim) ?? '';
    if (requested !== driverName && claim.metadata.annotations?.[migratedToKey] !== driverName) {
      return (
        `PVC annotated with external-provisioner name ${requested} ` +
        `does not match provisioner driver name ${driverName}. This could mean the PVC is not migrated`
      );
    }
    if (node === undefined || (await node.ownsClaim(claim, storageClass))) return undefined;
    return `not responsible for provisioning of PVC ${objectKey(claim)} because it is not assigned to node ${goQuote(node.nodeName)}`;
  }

  #recordPopulator(claim: PersistentVolumeClaim): void {
    const message = 'Assuming an external populator will provision the volume';
    this.#options.recorder.event(claimReference(claim), 'Normal', 'Provisioning', message);
  }
}
