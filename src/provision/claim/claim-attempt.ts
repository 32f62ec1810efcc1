/**
 * One attempt for a claim: decide, admit, provision, save. How it provisions depends on the provisioner: for a `Recoverable` one it plans,
 * records and creates, in `recorded-steps.ts`.
 */
import { shortValue } from '../../base/short-value.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { objectKey } from '../../kube/kube-object.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { isPartialClaim } from '../cache/cached-claim.ts';
import { uidIndex, unboundForIndex } from '../cache/informers.ts';
import {
  claimDecision,
  claimReference,
  claimUid,
  className,
  currentClaim,
  namesVolume,
  requestedProvisioner,
  selectedNode,
} from '../claim-fields.ts';
import type { ControllerMetrics } from '../controller-metrics.ts';
import { failedReason } from '../event-reasons.ts';
import { VolumeAbandonedError } from '../intents/intent-index.ts';
import { attemptWait, type LastErrors } from '../last-errors.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../objects.ts';
import type { Environment, ProvisionObserver } from '../provision-controller-options.ts';
import { IgnoredError, type Provisioner, type ProvisionOptions } from '../provisioner.ts';
import { canBind, isReservedFor, storedVolume } from '../volume/stored-volume.ts';
import type { VolumeStore } from '../volume/volume-store.ts';
import type { ClaimWaits } from '../waits.ts';
import { claimWakes } from '../wakes.ts';
import { handleFailure, toProvisionError } from './attempt-failure.ts';
import { type Attempt, type AttemptEnd, type AttemptSteps, endOf, Failed, Stopped, Waiting } from './attempt-steps.ts';
import type { InfeasibleClaims, MissingClasses, Rescheduler } from './claim-states.ts';

interface ClaimAttemptOptions {
  provisionerName: string;
  isKnownProvisioner: (name: string) => boolean;
  /** In the sidecar the `CsiProvisioner`. */
  provisioner: Omit<Provisioner, 'provision'>;
  /**
   * How an attempt is recorded, and its storage created: `RecordedSteps` for a `Recoverable` provisioner, else
   * `UnrecordedSteps`.
   */
  steps: AttemptSteps;
  observer: Required<ProvisionObserver>;
  claims: Lister<PersistentVolumeClaim>;
  classes: Lister<StorageClass>;
  volumes: Lister<PersistentVolume> & Pick<Informer<PersistentVolume>, 'isFollowing'>;
  /** Names of volumes that were saved and may not be in the cache yet. */
  recentlySaved: { has(volumeName: string): boolean };
  /** What the attempts for a claim depend on, until it has a volume. */
  waits: Pick<ClaimWaits, 'add' | 'delete'>;
  claimQueue: Pick<WorkQueue, 'addAfter'>;
  missingClasses: MissingClasses;
  rescheduler: Rescheduler;
  store: VolumeStore;
  infeasibleClaims: InfeasibleClaims;
  metrics: ControllerMetrics;
  volumeName: (claim: PersistentVolumeClaim) => string;
  /** Why the last attempt of each claim ended without a volume; undefined: that is not kept. */
  lastErrors: LastErrors | undefined;
}

/**
 * What a sync of a claim ended with.
 *
 * - `recovered`: an earlier attempt is recorded, for which no new one is needed: it is settled, or is being saved or revoked in the background.
 * - `stopped`: there is no volume, and no retry until something changes.
 * - `held-back`: it was infeasible, and its next attempt is not due; nothing was done.
 * - `waits`, `failed`: as `Waiting` and `Failed`.
 */
export type ClaimOutcome =
  | { readonly kind: 'provisioned' | 'recovered' | 'gone' | 'not-now' | 'stopped' | 'held-back' }
  | { readonly kind: 'waits'; readonly error: Error }
  | { readonly kind: 'failed'; readonly error: unknown };

/** When to sync a claim again whose saved volume is not in the cache, which may then never show that it is gone; in milliseconds. */
const unseenMs = 10_000;

export class ClaimAttempt {
  readonly #options: Environment & ClaimAttemptOptions;

  constructor(environment: Environment, options: ClaimAttemptOptions) {
    this.#options = { ...environment, ...options };
  }

  /** Safe to repeat at any time. Never rejects: what nobody expected is a failed attempt, too. */
  async run(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    try {
      return await this.#run(uid, signal);
    } catch (error) {
      return outcomeOf(endOf(error));
    }
  }

  async #run(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    const { steps, waits, logger } = this.#options;
    waits.delete(uid);
    const cached = await this.#currentClaim(uid, signal);
    if (cached instanceof Failed) return outcomeOf(cached);
    if (cached !== undefined && !namesVolume(cached)) waits.add(uid, `class/${className(cached)}`);
    if (steps.hasRecord(uid)) {
      const open = await steps.resume(uid, cached, signal);
      if (open === 'nothing-to-do') return { kind: 'recovered' };
      if (this.#isHeldBack(open.options.claim)) return { kind: 'held-back' };
      return this.#counted(open.options.claim, () => this.#provisionAndSave(open, signal));
    }
    const claim = cached ?? steps.keptClaim(uid);
    if (claim === undefined) {
      logger.debug({ uid }, 'Claim in work queue no longer exists');
      return { kind: 'gone' };
    }
    if (this.#isHeldBack(claim)) return { kind: 'held-back' };
    let outcome: ClaimOutcome = { kind: 'not-now' };
    const storageClass = await this.#classToProvisionWith(claim, signal);
    if (storageClass instanceof Failed) return outcomeOf(storageClass);
    if (storageClass !== undefined) {
      outcome = await this.#counted(claim, async () => {
        const volumeName = this.#options.volumeName(claim);
        const options: ProvisionOptions = { storageClass, volumeName, claim, selectedNodeName: selectedNode(claim) };
        const refusal = (await this.#admit(options, signal)) ?? (await steps.admit(options, signal));
        const end = refusal ?? (await this.#provisionAndSave({ options }, signal));
        const isThere = end instanceof Stopped && end.reason === 'volume-exists';
        const isUnseen = isThere && this.#options.volumes.get(volumeName) === undefined;
        if (isUnseen) this.#options.claimQueue.addAfter(uid, unseenMs); // no event may show that it goes
        return end;
      });
    }
    if (outcome.kind !== 'waits' && outcome.kind !== 'failed') steps.ended(uid);
    return outcome;
  }

  /** The cached claim; one that is cached in part is read live if there is work to do. @returns undefined if it is gone. */
  async #currentClaim(uid: string, signal: AbortSignal): Promise<PersistentVolumeClaim | Failed | undefined> {
    const { rescheduler, steps, isKnownProvisioner, classes, claims, client } = this.#options;
    const [claim] = claims.byIndex(uidIndex, uid);
    if (claim === undefined) return undefined;
    if (await rescheduler.isBehind(claim, signal))
      return new Failed(new Error(`claim ${objectKey(claim)} was rescheduled and the cache does not show it yet`));
    if (!isPartialClaim(claim)) return claim;
    if (!steps.hasRecord(uid)) {
      const getClass = (name: string): StorageClass | undefined => classes.get(name);
      const decision = claimDecision({ claim, qualifies: true, isKnownProvisioner, getClass });
      if (!decision.provision && decision.reason !== 'class-missing') return claim;
    }
    return currentClaim(client, claim, signal);
  }

  #isHeldBack(claim: PersistentVolumeClaim): boolean {
    const storageClass = this.#options.classes.get(className(claim));
    if (storageClass === undefined) return false;
    return this.#options.infeasibleClaims.mustWait(claimUid(claim), storageClass.metadata.uid ?? '');
  }

  /**
   * Decides by `claimDecision`. A class that the cache does not show is read live before it is reported as missing.
   *
   * @returns the class with which the claim is to be provisioned; undefined: not now, as it is bound, not for this provisioner, or waits
   * for a node. While the class does not exist the attempt counts as failed.
   */
  async #classToProvisionWith(
    claim: PersistentVolumeClaim,
    signal: AbortSignal,
  ): Promise<StorageClass | Failed | undefined> {
    const { provisioner, isKnownProvisioner, classes, missingClasses, metrics, logger } = this.#options;
    try {
      const qualifies = namesVolume(claim) || (await (provisioner.shouldProvision?.(claim, { signal }) ?? true));
      const input = { claim, qualifies, isKnownProvisioner };
      let decision = claimDecision({ ...input, getClass: (name) => classes.get(name) });
      if (!decision.provision && decision.reason === 'class-missing') {
        const storageClass = await missingClasses.read(claim, decision.className, signal);
        if (storageClass !== undefined) decision = claimDecision({ ...input, getClass: () => storageClass });
      }
      if (decision.provision) {
        const fields = {
          claim: objectKey(claim),
          class: decision.storageClass.metadata.name,
          node: shortValue(selectedNode(claim)),
        };
        logger.debug(fields, 'Provisioning the claim');
        return decision.storageClass;
      }
      // a bound claim is the usual case
      const level = decision.reason === 'bound' ? 'trace' : 'debug';
      logger[level]({ claim: objectKey(claim), reason: decision.reason }, 'Not provisioning the claim now');
      if (decision.reason !== 'class-missing') return undefined;
      metrics.provisionFailed(metricLabels(claim));
      return new Failed(missingClasses.report(claim, decision.className));
    } catch (error) {
      metrics.provisionFailed(metricLabels(claim));
      throw error;
    }
  }

  /** Counts and times the work: undefined means that the volume is provisioned. */
  async #counted(claim: PersistentVolumeClaim, work: () => Promise<AttemptEnd | undefined>): Promise<ClaimOutcome> {
    const { metrics, clock, logger, lastErrors, waits } = this.#options;
    const labels = metricLabels(claim);
    const startedMs = clock.monotonicMs();
    const end = await work().catch(endOf);
    if (end === undefined) {
      waits.delete(claimUid(claim));
      lastErrors?.delete(claimUid(claim));
      metrics.provisioned(labels, (clock.monotonicMs() - startedMs) / 1000);
      return { kind: 'provisioned' };
    }
    if (!(end instanceof Waiting)) metrics.provisionFailed(labels);
    if (end instanceof Stopped) {
      lastErrors?.add(claimUid(claim), end.message, claimWakes[end.reason].once);
      logger.debug({ claim: objectKey(claim), reason: end.message }, 'Provisioning stopped');
    }
    return outcomeOf(end);
  }

  /**
   * The last checks of the controller before the steps begin; none of them touches the backend.
   *
   * @returns why there is nothing to provision, or not yet.
   */
  async #admit(
    { claim, storageClass, volumeName }: ProvisionOptions,
    signal: AbortSignal,
  ): Promise<AttemptEnd | undefined> {
    const { provisioner, provisionerName, isKnownProvisioner, volumes, recentlySaved, recorder, client } =
      this.#options;
    const { waits } = this.#options;
    const reportFailure = (message: string): void =>
      recorder.event(claimReference(claim), 'Warning', failedReason, message);

    const { isFollowing } = volumes;
    const cached = volumes.get(volumeName);
    const isKnown = cached !== undefined || recentlySaved.has(volumeName);
    if (isKnown) waits.add(claimUid(claim), `gone/${volumeName}`);
    // the API server may have been restored from a backup without the volume: no event would bring the claim back
    const existing = isKnown && !isFollowing ? await storedVolume(client, volumeName, signal) : cached;
    if (existing !== undefined || (isKnown && isFollowing)) {
      if (existing !== undefined && !(await isReservedFor(claim, existing, { client, signal }))) {
        reportFailure(
          `PersistentVolume ${JSON.stringify(volumeName)} exists already and is not for this claim. Delete it, or recreate the claim`,
        );
      }
      return new Stopped('volume-exists', `volume ${volumeName} exists already`);
    }
    if (isKnown) this.#options.steps.volumeIsGone(claimUid(claim));
    const unbound = volumes
      .byIndex(unboundForIndex, claimUid(claim))
      .find((volume) => volume.metadata.name !== volumeName && canBind(claim, volume));
    if (unbound !== undefined) {
      // by a process with another name prefix: the claim can be bound to one volume, and a second one would be deleted again
      const { name } = unbound.metadata;
      waits.add(claimUid(claim), `gone/${name}`);
      const message = `PersistentVolume ${JSON.stringify(name)} was created for the claim, which is not bound to it yet`;
      return new Failed(new Error(message));
    }
    if (claim.spec.volumeMode === 'Block' && provisioner.supportsBlock?.({ signal }) !== true) {
      const message = `${provisionerName} does not support block volume provisioning`;
      reportFailure(message);
      return new Stopped('no-block', message);
    }
    if (!isKnownProvisioner(storageClass.provisioner)) {
      const { name } = storageClass.metadata;
      const requested = requestedProvisioner(claim) ?? '';
      const message = `StorageClass ${JSON.stringify(name)} names provisioner ${JSON.stringify(shortValue(storageClass.provisioner))}, and the claim asks for ${JSON.stringify(shortValue(requested))}. Nothing is provisioned until both agree`;
      reportFailure(message);
      return new Stopped('class-differs', message);
    }
    return undefined;
  }

  /** Records the event `Provisioning`, creates the volume through the steps, and saves it. The attempt was admitted or has a record. */
  async #provisionAndSave(attempt: Attempt, signal: AbortSignal): Promise<AttemptEnd | undefined> {
    const { observer, store, steps, recorder } = this.#options;
    const { claim } = attempt.options;
    const message = `External provisioner is provisioning volume for claim ${JSON.stringify(objectKey(claim))}`;
    recorder.event(claimReference(claim), 'Normal', 'Provisioning', message);
    let created: PersistentVolume | Stopped;
    try {
      created = await steps.provision(attempt, signal);
    } catch (error) {
      return this.#afterFailure(error, attempt.options, signal);
    }
    if (created instanceof Stopped) return created;
    observer.onProvisioned(created, attempt.options);
    const refusal = await store.save(claim, created);
    if (refusal === undefined) return undefined;
    steps.unsaved(claim, created);
    return new Failed(refusal);
  }

  /** @param error - by which a provisioner or a record says how its attempt has ended. */
  async #afterFailure(error: unknown, options: ProvisionOptions, signal: AbortSignal): Promise<AttemptEnd> {
    if (error instanceof IgnoredError) return new Stopped('ignored', error.message);
    if (error instanceof VolumeAbandonedError) return new Stopped('abandoned', error.message);
    if (attemptWait(error) !== undefined) return endOf(error);
    const { observer, steps } = this.#options;
    const failure = toProvisionError(error);
    observer.onProvisionFailed(failure, options);
    const end = await handleFailure(options.claim, failure, this.#options, signal);
    if (end instanceof Failed) steps.failed(options.claim, failure);
    return end;
  }
}

function outcomeOf(end: AttemptEnd): ClaimOutcome {
  if (end instanceof Stopped) return { kind: 'stopped' };
  return end instanceof Waiting ? { kind: 'waits', error: end.error } : { kind: 'failed', error: end.error };
}

function metricLabels(claim: PersistentVolumeClaim): { class: string; source: string } {
  return { class: claim.spec.storageClassName ?? '', source: claim.spec.dataSource?.kind ?? '' };
}
