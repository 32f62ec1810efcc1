/** Provisioning through a CSI driver: the `Recoverable` provisioner that the controller calls. */
import { goQuote } from '../base/go-quote.ts';
import { shortValue } from '../base/short-value.ts';
import { objectKey } from '../kube/kube-object.ts';
import type { BackendProgress, FulfilContext, Plan, Recoverable, RevokeContext } from '../provision/recoverable.ts';
import { claimReference, requestedProvisioner } from '../provision/claim-fields.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
} from '../provision/objects.ts';
import {
  IgnoredError,
  ProvisionError,
  type ProvisionContext,
  type ProvisionOptions,
} from '../provision/provisioner.ts';
import { AttachmentGate, deleteVolume } from './delete-volume.ts';
import { PlannedVolume, planVolume, type VolumePlan } from './create/volume-plan.ts';
import { createVolume } from './create/create-volume.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { errorMessage } from './call-error.ts';
import { failingAs, unforeseenAsInBackground } from './error-policy.ts';
import { isMadeElsewhere } from './node-deployment/volume-ownership.ts';
import { recordedPlan } from './create/recorded-plan.ts';
import { revokeVolume, secretsOf } from './revoke-volume.ts';
import { KeptSecrets } from './secrets/read-secret.ts';
import { templateAnnotations } from './secrets/secret-reference.ts';
import { type OpenSource, openSource, plannedDataSource, whyNotGranted } from './sources/data-source.ts';
import { protectFoundSource, protectSource, unprotectSource } from './sources/planned-source.ts';
import { snapshotsInUse } from './sources/snapshot-sweep.ts';
import { type CsiStorage, csiStorage } from './migration/driver-migration.ts';
import { SharedRequisite } from './topology/planned-topology.ts';
import { PopulatorError } from './create/validate-claim.ts';

/**
 * Makes and deletes volumes with a CSI driver. Every method may be called again for the same claim or volume: names
 * and requests stay the same.
 */
export class CsiProvisioner implements Recoverable {
  /** Set in node deployment only: whether the identity in the volume names another instance. */
  readonly isElsewhere: ((volume: PersistentVolume) => boolean) | undefined;
  readonly progress: BackendProgress | undefined;
  readonly #options: CsiProvisionerOptions;
  readonly #attachmentGate: AttachmentGate;
  readonly #keptSecrets = new KeptSecrets();
  readonly #storage: CsiStorage;
  readonly #requisite = new SharedRequisite();
  /** UIDs of claims whose volume is copied: until their record is closed it counts as open, but needs its source no more. */
  readonly #copied = new Set<string>();

  constructor(given: CsiProvisionerOptions) {
    const options = tellingNode(given);
    this.#options = options;
    this.progress = options.progress;
    this.#attachmentGate = new AttachmentGate(options);
    const { driverName, migration, node } = options;
    this.isElsewhere = node && ((volume) => isMadeElsewhere(volume, { driverName, nodeName: node.nodeName }));
    this.#storage = csiStorage({ isDriver: (name) => name === driverName, migration });
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

  /**
   * @param storageClass - of a claim that is about to be provisioned, see `NodeHook.ownsClaim`.
   * @returns nothing when the claim is for this driver and, in node deployment, for this node.
   */
  async #whyNotOurs(claim: PersistentVolumeClaim, storageClass?: StorageClass): Promise<string | undefined> {
    const { driverName, node } = this.#options;
    const requested = requestedProvisioner(claim) ?? '';
    if (requested !== driverName && claim.metadata.annotations?.[migratedToKey] !== driverName) {
      return (
        `PVC annotated with external-provisioner name ${shortValue(requested)} ` +
        `does not match provisioner driver name ${driverName}. This could mean the PVC is not migrated`
      );
    }
    if (node === undefined || (await node.ownsClaim(claim, storageClass))) return undefined;
    return `not responsible for provisioning of PVC ${objectKey(claim)} because it is not assigned to node ${goQuote(node.nodeName)}`;
  }

  /**
   * The plan is all that `fulfil` needs, also in another process; in this process it also gets what was read for the plan. Its list of
   * topologies is that of the plan made before it, where the two are equal.
   */
  async plan(options: ProvisionOptions, context: ProvisionContext): Promise<PlannedVolume> {
    this.#options.planWaits?.forget(options.claim.metadata.uid ?? '');
    const { plan, ...read } = await failingAs('no-change', async () => {
      await this.#checkOurs(options);
      try {
        return await planVolume(this.#options, options, context);
      } catch (error) {
        if (error instanceof PopulatorError) this.#reportPopulator(options.claim);
        throw error;
      }
    });
    this.#copied.delete(plan.claim.uid);
    const { topology, spec } = plan;
    const shared: VolumePlan = { ...plan, ...(topology && { topology: this.#requisite.share(topology) }) };
    const { volumeAttributesClassName: wanted = '' } = options.claim.spec;
    // left out as the API is not served; with the gate off `attributesClasses` is undefined, and nobody expects the class to be applied
    const isLeftOut =
      wanted !== '' && spec.volumeAttributesClassName === undefined && this.#options.attributesClasses !== undefined;
    const withClassLeftOut = isLeftOut ? options.claim : undefined;
    return new PlannedVolume({ plan: shared, ...read }, { withClassLeftOut, nowMs: this.#options.clock.monotonicMs() });
  }

  /** @throws {IgnoredError} when the claim is not ours, and {ProvisionError} when that cannot be determined. */
  async #checkOurs({ claim, storageClass }: ProvisionOptions): Promise<void> {
    const reason = await failingAs(
      'no-change',
      () => this.#whyNotOurs(claim, storageClass),
      (error) => `node check failed: ${errorMessage(error)}`,
    );
    if (reason !== undefined) throw new IgnoredError(reason);
  }

  /** The secret is read again, unless the plan was made in this process a moment ago. */
  fulfil(given: Plan, context: FulfilContext): Promise<PersistentVolume> {
    return unforeseenAsInBackground(context, async (guarded) => {
      const planned = context.planned instanceof PlannedVolume ? context.planned : undefined;
      const plan = planned?.plan ?? recordedPlan(given, this.#options.driverName);
      await this.#checkGrant(plan);
      const kept = planned?.takeSecrets(this.#options.clock.monotonicMs()); // `{}` where the plan names no secret
      const secrets = kept ?? (await secretsOf(this.#options, plan, guarded.signal));
      this.#keptSecrets.set(plan, secrets);
      const create = (): Promise<PersistentVolume> => createVolume(this.#options, plan, { ...guarded, secrets });
      return this.#withSourceAndAttributesClass(plan, planned, guarded, create);
    });
  }

  /** A grant may be revoked before the content is copied. @throws {ProvisionError} state `no-change`. */
  async #checkGrant({ claim, source }: VolumePlan): Promise<void> {
    if (source === undefined || source.namespace === claim.namespace) return;
    const { planWaits, referenceGrants } = this.#options;
    const check = (): void => {
      const refusal = whyNotGranted(referenceGrants, claim, plannedDataSource(source));
      if (refusal !== undefined) throw new ProvisionError(refusal, { state: 'no-change' });
    };
    if (planWaits === undefined) check();
    else await planWaits.during(claim.uid, 'grants', check);
  }

  revoke(given: Plan, context: RevokeContext): Promise<void> {
    return unforeseenAsInBackground(context, (guarded) =>
      revokeVolume(this.#options, recordedPlan(given, this.#options.driverName), {
        ...guarded,
        secrets: this.#keptSecrets,
      }),
    );
  }

  /** CSI volumes of the driver, and in-tree ones of the plugin that it replaced. */
  ownsSource(volume: PersistentVolume): boolean {
    return this.#storage.ownsSource(volume);
  }

  /** In-tree volumes of the plugin that the driver replaced have keys, too. */
  storageKeys(volume: PersistentVolume): readonly string[] {
    return this.#storage.storageKeys(volume);
  }

  handleKey(handle: string): string {
    return this.#storage.handleKey(handle);
  }

  /** Whether the plan has a source, which is protected until the driver has copied it. */
  holds(plan: Plan): boolean {
    return openSource(plan) !== undefined;
  }

  /** Frees a snapshot that no claim and no other volume in progress needs. */
  async release(plan: Plan, { signal }: ProvisionContext): Promise<void> {
    const open = openSource(plan);
    if (open === undefined) return;
    const { claim } = plan as Pick<VolumePlan, 'claim'>;
    const key = objectKey({ metadata: open.source });
    const isNeeded = (): boolean => this.#isNeeded(open) || snapshotsInUse(this.#options.claims.list()).has(key);
    await unprotectSource(this.#options, open.source, { claimNamespace: claim.namespace, isNeeded, signal });
  }

  async delete(volume: PersistentVolume, context: ProvisionContext): Promise<void> {
    await deleteVolume(this.#options, volume, { ...context, gate: this.#attachmentGate });
  }

  /** No while a released volume is still attached: the deletion of its last attachment must requeue the volume. */
  shouldDelete(volume: PersistentVolume): boolean {
    return !this.#attachmentGate.mustWait(volume);
  }

  /** Those that templates for names of Secrets refer to: no other annotation reaches the driver or the volume. */
  claimAnnotations(storageClass: StorageClass): string[] {
    return templateAnnotations(storageClass.parameters ?? {});
  }

  /** Drops what was kept for retries of the claim. */
  forget(claimUid: string): void {
    this.#copied.delete(claimUid);
    this.#keptSecrets.delete(claimUid);
    this.#options.planWaits?.forget(claimUid);
    this.#options.node?.forgetClaim(claimUid);
    this.#options.attributesClasses?.forget(claimUid);
  }

  /** Always: a driver that cannot do it refuses CreateVolume. */
  supportsBlock(): boolean {
    return true;
  }

  /**
   * Protects the source until its content is copied, and reports a volume attributes class that the plan leaves out. For a plan with
   * neither it only calls `create`.
   */
  async #withSourceAndAttributesClass(
    plan: VolumePlan,
    planned: PlannedVolume | undefined,
    context: FulfilContext,
    create: () => Promise<PersistentVolume>,
  ): Promise<PersistentVolume> {
    await this.#protect(plan, planned?.sourceUid, context);
    const volume = await create();
    await this.#unprotect(plan, context);
    if (planned?.withClassLeftOut !== undefined) this.#reportUnusedAttributesClass(planned.withClassLeftOut);
    return volume;
  }

  /**
   * Protects the source, if there is one. At each attempt: another process that restored the same snapshot may have removed the finalizer
   * meanwhile.
   */
  async #protect(
    { source }: VolumePlan,
    sourceUid: string | undefined,
    { mayExist, signal }: FulfilContext,
  ): Promise<void> {
    if (mayExist) await protectFoundSource(this.#options, source, signal);
    else await protectSource(this.#options, source, signal, sourceUid);
  }

  /** Frees a snapshot that no other volume in progress needs. */
  async #unprotect({ claim, source }: VolumePlan, { signal }: ProvisionContext): Promise<void> {
    if (source?.handling !== 'snapshot') return;
    this.#copied.add(claim.uid);
    const isNeeded = (): boolean => this.#isNeeded({ claimUid: claim.uid, source });
    await unprotectSource(this.#options, source, { claimNamespace: claim.namespace, isNeeded, signal });
  }

  /** Whether the volume of another claim is being made from the same source. */
  #isNeeded({ claimUid, source }: Pick<OpenSource, 'claimUid' | 'source'>): boolean {
    for (const other of this.#options.plannedSources?.() ?? []) {
      if (other.claimUid === claimUid || this.#copied.has(other.claimUid)) continue;
      if (
        other.source.handling === source.handling &&
        objectKey({ metadata: other.source }) === objectKey({ metadata: source })
      )
        return true;
    }
    return false;
  }

  #reportUnusedAttributesClass(claim: PersistentVolumeClaim): void {
    const { recorder } = this.#options;
    const { volumeAttributesClassName: name = '' } = claim.spec;
    const message =
      `Volume attributes class ${goQuote(name)} was not applied: the API server does not serve volumeattributesclasses. ` +
      'From 1.31 on, Kubernetes does not bind the claim to a volume without its class: have the API served, then delete and recreate the claim';
    recorder.event(claimReference(claim), 'Warning', 'VolumeAttributesClassNotApplied', message, { once: true });
  }

  #reportPopulator(claim: PersistentVolumeClaim): void {
    const message = 'Assuming an external populator will provision the volume';
    this.#options.recorder.event(claimReference(claim), 'Normal', 'Provisioning', message);
  }
}

/** Whichever step deletes a volume, the node hears of it. */
function tellingNode(options: CsiProvisionerOptions): CsiProvisionerOptions {
  const { node, controller } = options;
  if (node === undefined) return options;
  const deleteVolume: typeof controller.deleteVolume = async (request, call) => {
    await controller.deleteVolume(request, call);
    node.roomFreed();
  };
  return { ...options, controller: { ...controller, deleteVolume } };
}
