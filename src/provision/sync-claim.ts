/** The sync of a claim: decide, provision, save. What is decided lies in pure functions; this file acts on it. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { type Permit, permitted } from '../base/permit.ts';
import { shortValue } from '../base/short-value.ts';
import type { Lister } from '../kube/lister.ts';
import { objectKey } from '../kube/kube-object.ts';
import { type AdmissionOptions, admitClaim } from './admit-claim.ts';
import { isPartialClaim } from './cached-claim.ts';
import { claimReference, claimUid, className, selectedNode } from './claim-facts.ts';
import type { ClaimRecovery } from './claim-recovery.ts';
import type { ClaimTraces } from './claim-traces.ts';
import { completeVolume, volumeTemplate } from './complete-volume.ts';
import { currentClaim } from './current-claim.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import { uidIndex } from './informers.ts';
import type { Intent } from './intent.ts';
import type { Intents } from './intents.ts';
import { VolumeAbandonedError } from './volume-abandoned-error.ts';
import type { LastErrors } from './last-errors.ts';
import { MissingClasses } from './missing-classes.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { handleFailure, toProvisionError } from './provision-failure.ts';
import { ProvisionStopped } from './provision-stopped.ts';
import type { ProvisionObserver } from './provision-observer.ts';
import { IgnoredError, ProvisionError, type Provisioner, type ProvisionOptions } from './provisioner.ts';
import type { Recoverable } from './recoverable.ts';
import { Rescheduler } from './rescheduler.ts';
import { type ClaimDecision, shouldProvision } from './should-provision.ts';
import type { SlowSet } from './slow-set.ts';
import type { VolumeStore } from './volume-store.ts';

export interface ClaimSyncerOptions extends AdmissionOptions {
  provisioner: Provisioner | Recoverable;
  observer: Required<ProvisionObserver>;
  claims: Lister<PersistentVolumeClaim>;
  classes: Lister<StorageClass>;
  store: VolumeStore;
  slowSet: SlowSet;
  metrics: ControllerMetrics;
  addFinalizer: boolean;
  volumeName: (claim: PersistentVolumeClaim) => string;
  /** Of a `Recoverable` provisioner; else undefined. */
  recovery: ClaimRecovery | undefined;
  /** What may be under way at a `Recoverable` provisioner. */
  intents: Pick<Intents, 'get' | 'forget'>;
  /** Undefined: nobody reads them. */
  lastErrors: LastErrors | undefined;
  /** Undefined: nothing is traced. */
  traces: ClaimTraces | undefined;
  permit: Permit | undefined;
  clock: Clock;
  logger: Logger;
}

/**
 * The result of a successful sync: a new volume, or the reason why there is nothing to do now. `recovered`: what an earlier
 * attempt left was settled, and no new volume is needed.
 */
export type ClaimOutcome = 'provisioned' | 'recovered' | 'gone' | 'not-now' | 'stopped';

export class ClaimSyncer {
  readonly #options: ClaimSyncerOptions;
  /**
   * Claims whose volume may be in the making at a provisioner that is not `Recoverable`, as they were at the last attempt:
   * provisioning goes on even if they are deleted meanwhile, so that the volume gets an object and is cleaned up.
   */
  readonly #inProgress = new Map<string, PersistentVolumeClaim>();
  /** UIDs of claims whose sync is under way. */
  readonly #syncing = new Set<string>();
  readonly #missingClasses: MissingClasses;
  readonly #rescheduler: Rescheduler;

  constructor(options: ClaimSyncerOptions) {
    this.#options = options;
    this.#missingClasses = new MissingClasses(options);
    this.#rescheduler = new Rescheduler(options);
  }

  /** The controller gives up on the claim until something changes. `settle` is to follow. */
  giveUp(uid: string): void {
    this.#inProgress.delete(uid);
  }

  /** How log lines name a claim: by namespace and name where those are known. */
  describe(uid: string): { claim?: string; uid: string } {
    const claim = this.#known(uid)?.metadata ?? this.#options.intents.get(uid)?.record.claim;
    return claim === undefined ? { uid } : { claim: objectKey({ metadata: claim }), uid };
  }

  /** Whether something is recorded for the claim: also its deletion needs a sync. */
  hasIntent(uid: string): boolean {
    return this.#options.intents.get(uid) !== undefined;
  }

  #known(uid: string): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, uid)[0] ?? this.#inProgress.get(uid);
  }

  /** Whether its volume may be in the making: then each change of the claim needs a sync. */
  isInProgress(uid: string): boolean {
    return this.#inProgress.has(uid) || this.hasIntent(uid);
  }

  /**
   * The claim changed: forgets it, here and in the provisioner, once nothing more is to be done for it. Safe to repeat.
   *
   * @returns whether that is so.
   */
  settle(uid: string): boolean {
    if (this.#syncing.has(uid) || this.isInProgress(uid)) return false; // the end of the sync calls this again
    const claim = this.#options.claims.byIndex(uidIndex, uid)[0];
    if (claim !== undefined && (claim.spec.volumeName ?? '') === '') return false;
    this.#missingClasses.forget(uid);
    this.#options.lastErrors?.delete(uid);
    this.#options.traces?.settled(uid);
    this.#options.slowSet.delete(uid);
    this.#rescheduler.forget(uid);
    this.#options.intents.forget(uid);
    this.#options.provisioner.forget?.(uid);
    return true;
  }

  /**
   * Reconciles one claim. Safe to repeat at any time.
   *
   * @throws when the claim must be tried again later.
   */
  async sync(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    this.#syncing.add(uid);
    try {
      const { traces } = this.#options;
      if (traces === undefined) return await this.#syncUid(uid, signal);
      return await traces.attempt(uid, () => this.#syncUid(uid, signal));
    } catch (error) {
      this.#options.lastErrors?.add(uid, error);
      throw error;
    } finally {
      this.#syncing.delete(uid);
      this.settle(uid);
    }
  }

  async #syncUid(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    const found = this.#options.claims.byIndex(uidIndex, uid)[0];
    if (found !== undefined) await this.#rescheduler.checkVersion(found, signal);
    const { recovery, intents } = this.#options;
    const cached = found && (await this.#whole(found, signal));
    const intent = intents.get(uid);
    if (recovery !== undefined && intent !== undefined) return this.#resume(recovery, intent, cached, signal);
    const claim = cached ?? this.#inProgress.get(uid);
    if (claim === undefined) {
      this.#options.logger.debug({ uid }, 'Claim in work queue no longer exists');
      return 'gone';
    }
    const outcome = await this.#syncClaim(claim, signal);
    this.#inProgress.delete(uid);
    return outcome;
  }

  /** The whole claim: one that is cached in part is read if there is work to do. @returns undefined if it is gone. */
  async #whole(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
    const { intents, isKnownProvisioner, classes, client } = this.#options;
    if (!isPartialClaim(claim)) return claim;
    if (intents.get(claimUid(claim)) === undefined) {
      const getClass = (name: string): StorageClass | undefined => classes.get(name);
      const decision = await shouldProvision({ claim, qualifies: () => true, isKnownProvisioner, getClass });
      if (!decision.provision && decision.reason !== 'class-missing') return claim;
    }
    return currentClaim(client, claim, signal);
  }

  /** The claim as it is now decides what becomes of an open intent; its class and its source are not looked at. */
  async #resume(
    recovery: ClaimRecovery,
    intent: Intent,
    cached: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<ClaimOutcome> {
    const claim = await recovery.resume(intent, cached, signal);
    if (claim === undefined) return 'recovered';
    this.#checkSlowSet(claim);
    const attempt = recovery.attempt(intent, claim);
    return this.#measured(claim, async () => {
      this.#recordStart(claim);
      await this.#makeAndSave(attempt, signal, () => recovery.fulfil(intent, signal));
    });
  }

  async #syncClaim(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<ClaimOutcome> {
    this.#checkSlowSet(claim);
    const { metrics, logger } = this.#options;
    const labels = metricLabels(claim);
    let decision: ClaimDecision & { provision: true };
    try {
      const decided = await this.#decide(claim, signal);
      if (!decided.provision) {
        // a bound claim is the usual case
        const level = decided.reason === 'bound' ? 'trace' : 'debug';
        logger[level]({ claim: objectKey(claim), reason: decided.reason }, 'Not provisioning the claim now');
        if (decided.reason !== 'class-missing') return 'not-now';
        throw this.#missingClasses.report(claim, decided.className);
      }
      decision = decided;
      const { name } = decision.storageClass.metadata;
      logger.debug(
        { claim: objectKey(claim), class: name, node: shortValue(selectedNode(claim)) },
        'Provisioning the claim',
      );
    } catch (error) {
      metrics.provisionFailed(labels);
      throw error;
    }
    return this.#measured(claim, () => this.#provision(claim, decision.storageClass, signal));
  }

  async #measured(claim: PersistentVolumeClaim, provision: () => Promise<void>): Promise<ClaimOutcome> {
    const { metrics, clock, logger } = this.#options;
    const labels = metricLabels(claim);
    const startedMs = clock.monotonicMs();
    try {
      await provision();
    } catch (error) {
      metrics.provisionFailed(labels);
      if (!(error instanceof ProvisionStopped)) throw error;
      this.#options.lastErrors?.add(claimUid(claim), error);
      logger.debug({ claim: objectKey(claim), reason: error.message }, 'Provisioning stopped');
      return 'stopped';
    }
    this.#options.lastErrors?.delete(claimUid(claim));
    metrics.provisioned(labels, (clock.monotonicMs() - startedMs) / 1000);
    return 'provisioned';
  }

  async #decide(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<ClaimDecision> {
    const { provisioner, isKnownProvisioner, classes } = this.#options;
    const decision = await shouldProvision({
      claim,
      qualifies: () => provisioner.shouldProvision?.(claim, { signal }) ?? true,
      isKnownProvisioner,
      getClass: (name) => classes.get(name),
    });
    if (decision.provision || decision.reason !== 'class-missing') return decision;
    const storageClass = await this.#missingClasses.read(claim, decision.className, signal);
    if (storageClass === undefined) return decision;
    return shouldProvision({ claim, qualifies: () => true, isKnownProvisioner, getClass: () => storageClass });
  }

  #checkSlowSet(claim: PersistentVolumeClaim): void {
    const storageClass = this.#options.classes.get(className(claim));
    if (storageClass === undefined) return;
    const uid = claimUid(claim);
    if (!this.#options.slowSet.holdsBack(uid, storageClass.metadata.uid ?? '')) return;
    throw new Error(
      `skipping volume provisioning for pvc ${uid}, because provisioning previously failed with infeasible error`,
    );
  }

  /** @throws {ProvisionStopped} when there is nothing to do or to retry, anything else for a retry. */
  async #provision(claim: PersistentVolumeClaim, storageClass: StorageClass, signal: AbortSignal): Promise<void> {
    const { provisioner, addFinalizer, recovery, permit } = this.#options;
    const volumeName = this.#options.volumeName(claim);
    await admitClaim({ claim, storageClass, volumeName }, this.#options, signal);
    const options: ProvisionOptions = { storageClass, volumeName, claim, selectedNodeName: selectedNode(claim) };
    await recovery?.admit(options, signal);
    this.#recordStart(claim);
    await this.#makeAndSave(options, signal, async () => {
      if (recovery !== undefined) return recovery.make(options, signal);
      const plain = provisioner as Provisioner; // else there were a recovery
      const made = await permitted(permit, signal, () => plain.provision(options, { signal, permit }));
      return completeVolume(made, volumeTemplate(options), { addFinalizer });
    });
  }

  #recordStart(claim: PersistentVolumeClaim): void {
    this.#options.recorder.event(
      claimReference(claim),
      'Normal',
      'Provisioning',
      `External provisioner is provisioning volume for claim ${JSON.stringify(objectKey(claim))}`,
    );
  }

  async #makeAndSave(
    options: ProvisionOptions,
    signal: AbortSignal,
    make: () => Promise<PersistentVolume>,
  ): Promise<void> {
    const { observer, store } = this.#options;
    const { claim } = options;
    let volume: PersistentVolume;
    try {
      volume = await make();
    } catch (error) {
      throw await this.#afterFailure(error, options, signal);
    }
    observer.onProvisioned(volume, options);
    try {
      await store.save(claim, volume);
    } catch (error) {
      this.#inProgress.delete(claimUid(claim)); // the store cleaned up: nothing runs in the background
      this.#options.recovery?.unsaved(volume);
      throw error;
    }
  }

  /** @returns what the attempt ends with. */
  async #afterFailure(error: unknown, attempt: ProvisionOptions, signal: AbortSignal): Promise<Error> {
    const { claim } = attempt;
    if (error instanceof ProvisionStopped) return error;
    if (error instanceof IgnoredError || error instanceof VolumeAbandonedError)
      return new ProvisionStopped(error.message);
    const failure = toProvisionError(error);
    this.#options.observer.onProvisionFailed(failure, attempt);
    const outcome = await handleFailure(claim, failure, { ...this.#options, rescheduler: this.#rescheduler }, signal);
    if (outcome instanceof ProvisionError) this.#noteState(claim, outcome);
    return outcome;
  }

  #noteState(claim: PersistentVolumeClaim, { infeasible, state }: ProvisionError): void {
    if (this.#options.recovery !== undefined) return;
    if (!infeasible && state === 'in-background') this.#inProgress.set(claimUid(claim), claim);
    else if (infeasible || state !== 'no-change') this.#inProgress.delete(claimUid(claim));
  }
}

function metricLabels(claim: PersistentVolumeClaim): { class: string; source: string } {
  return { class: claim.spec.storageClassName ?? '', source: claim.spec.dataSource?.kind ?? '' };
}
