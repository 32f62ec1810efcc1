/** Provisioning through a CSI driver: the `Provisioner` that the controller calls. */
import { goQuote } from '../base/go-quote.ts';
import { objectKey } from '../kube/objects.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../provision/objects.ts';
import {
  IgnoredError,
  ProvisionError,
  type Provisioner,
  type ProvisionContext,
  type ProvisionOptions,
} from '../provision/provisioner.ts';
import { AttachmentGate } from './attachment-gate.ts';
import { checkResponse, type CreatedVolume } from './check-response.ts';
import { cleanUpVolume } from './cleanup-volume.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { deleteVolume } from './delete-volume.ts';
import { createVolumeError } from './error-policy.ts';
import { errorMessage } from './error-message.ts';
import { failingAs } from './failing-as.ts';
import { persistentVolume } from './persistent-volume.ts';
import { prepareVolume, type PreparedVolume } from './prepare-volume.ts';
import { unprotectSnapshot } from './sources/snapshot-source.ts';

const provisionerAnnotation = 'volume.kubernetes.io/storage-provisioner';
const betaProvisionerAnnotation = 'volume.beta.kubernetes.io/storage-provisioner';
const migratedToAnnotation = 'pv.kubernetes.io/migrated-to';

/**
 * Makes and deletes volumes with a CSI driver. Every method may be called again for the same claim or volume: names
 * and requests stay the same.
 */
export class CsiProvisioner implements Provisioner {
  readonly #options: CsiProvisionerOptions;
  readonly #attachmentGate: AttachmentGate;

  constructor(options: CsiProvisionerOptions) {
    this.#options = options;
    this.#attachmentGate = new AttachmentGate(options);
  }

  /** Whether the claim was handed to this driver; in node deployment also whether it is for this node. */
  async shouldProvision(claim: PersistentVolumeClaim): Promise<boolean> {
    if (!this.#isOurs(claim)) return false;
    try {
      return (await this.#options.node?.ownsClaim(claim, undefined)) ?? true;
    } catch (error) {
      // Provisioning asks again and then fails where people see it.
      this.#options.logger.info({ err: error, claim: objectKey(claim) }, 'Node check failed');
      return true;
    }
  }

  /** @throws {ProvisionError} and {IgnoredError} as the interface says; the texts are those of the reference. */
  provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    // Every step says what its failure means; of an exception that none foresaw nobody knows what it left behind.
    return failingAs('in-background', () => this.#provision(options, context));
  }

  async #provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    await this.#checkOwnership(options);
    const prepared = await this.prepare(options, context);
    const created = await this.#createVolume(options, prepared, context);
    const volume = await this.#describe(options, prepared, created);
    this.#options.topology?.forget(options.claim.metadata.uid ?? '');
    await this.#unprotectSource(options, prepared, context);
    return volume;
  }

  /**
   * All steps of an attempt before CreateVolume, with their side effects: the source is protected, secrets are read.
   *
   * @throws as `provision`.
   */
  prepare(options: ProvisionOptions, context: ProvisionContext): Promise<PreparedVolume> {
    return prepareVolume(this.#options, options, context);
  }

  async delete(volume: PersistentVolume, context: ProvisionContext): Promise<void> {
    await deleteVolume(this.#options, volume, { ...context, gate: this.#attachmentGate });
  }

  /** No while a released volume is still attached: deleting its last attachment must look at the volume again. */
  shouldDelete(volume: PersistentVolume): boolean {
    return !this.#attachmentGate.mustWait(volume);
  }

  /** The claim is done with: nothing of it is needed for a repeat. */
  forget(claimUid: string): void {
    this.#options.topology?.forget(claimUid);
    this.#options.node?.forgetClaim(claimUid);
  }

  /** Always: a driver that cannot do it refuses CreateVolume. */
  supportsBlock(): boolean {
    return true;
  }

  #isOurs({ metadata: { annotations = {} } }: PersistentVolumeClaim): boolean {
    const { driverName } = this.#options;
    return namedProvisioner(annotations) === driverName || annotations[migratedToAnnotation] === driverName;
  }

  async #checkOwnership({ claim, storageClass }: ProvisionOptions): Promise<void> {
    const { driverName, node } = this.#options;
    if (!this.#isOurs(claim)) {
      throw new IgnoredError(
        `PVC annotated with external-provisioner name ${namedProvisioner(claim.metadata.annotations ?? {})} ` +
          `does not match provisioner driver name ${driverName}. This could mean the PVC is not migrated`,
      );
    }
    if (node === undefined) return;
    const owned = await failingAs(
      'no-change',
      () => node.ownsClaim(claim, storageClass),
      (error) => `node check failed: ${errorMessage(error)}`,
    );
    if (owned) return;
    throw new IgnoredError(
      `not responsible for provisioning of PVC ${objectKey(claim)} because it is not assigned to node ${goQuote(node.nodeName)}`,
    );
  }

  async #createVolume(
    options: ProvisionOptions,
    prepared: PreparedVolume,
    { signal }: ProvisionContext,
  ): Promise<CreatedVolume> {
    const { controller, clock, timeoutMs, topology } = this.#options;
    const call = {
      signal,
      migrated: prepared.storageClass !== options.storageClass,
      about: { claim: objectKey(options.claim) },
    };
    const response = await controller.createVolume(prepared.request, call).catch((error: unknown) => {
      const mayReschedule = prepared.topologySupported && options.selectedNodeName !== '';
      const failure = createVolumeError(error, { mayReschedule });
      const isOver = failure.state === 'finished' || failure.state === 'reschedule';
      if (isOver) topology?.forget(options.claim.metadata.uid ?? '');
      throw failure;
    });
    const created = checkResponse(response, {
      requestedBytes: prepared.requestedBytes,
      contentSource: prepared.request.volume_content_source !== undefined,
    });
    if (!('problem' in created)) return created;
    const { volumeId, problem, cleanupLabel } = created;
    const secrets = prepared.request.secrets ?? {};
    // The request is repeated in either case: what the driver does with the same name then is its own affair.
    await failingAs(
      'in-background',
      () => cleanUpVolume({ controller, clock, timeoutMs, volumeId, secrets, call }),
      (error) =>
        `${problem}. ${cleanupLabel} of volume ${prepared.name} failed, volume is orphaned: ${errorMessage(error)}`,
    );
    throw new ProvisionError(problem, { state: 'in-background' });
  }

  #describe(options: ProvisionOptions, prepared: PreparedVolume, created: CreatedVolume): Promise<PersistentVolume> {
    const { migration } = this.#options;
    const volume = persistentVolume(this.#options, options, prepared, created);
    if (migration === undefined || prepared.storageClass === options.storageClass) return Promise.resolve(volume);
    return failingAs('in-background', () => migration.toInTree(volume));
  }

  /** Sources of other namespaces keep their protection: the sweep of their provisioner removes it. */
  async #unprotectSource(
    { claim }: ProvisionOptions,
    { source }: PreparedVolume,
    { signal }: ProvisionContext,
  ): Promise<void> {
    if (source?.kind !== 'VolumeSnapshot' || source.namespace !== claim.metadata.namespace) return;
    const { client, logger } = this.#options;
    await unprotectSnapshot({ client, logger, snapshot: source, signal });
  }
}

/** The current annotation counts when it is there at all, even if empty. */
function namedProvisioner(annotations: Record<string, string>): string {
  return annotations[provisionerAnnotation] ?? annotations[betaProvisionerAnnotation] ?? '';
}
