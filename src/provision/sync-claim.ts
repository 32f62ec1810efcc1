/** One turn of a claim: decide, provision, save. What is decided lies in pure functions; this file does it. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { ForbiddenError, NotFoundError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Lister } from '../kube/lister.ts';
import { objectKey } from '../kube/objects.ts';
import type { Recorder } from '../kube/recorder.ts';
import { isOlderVersion } from '../kube/resource-version.ts';
import { claimReference, claimUid, className, requestedProvisioner, selectedNode } from './claim-facts.ts';
import { completeVolume } from './complete-volume.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import { isReservedFor } from './existing-volume.ts';
import { uidIndex } from './informers.ts';
import { selectedNodeKey } from './keys.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from './objects.ts';
import type { ProvisionObserver } from './provision-observer.ts';
import { IgnoredError, ProvisionError, type ProvisionOptions, type Provisioner } from './provisioner.ts';
import { type ClaimDecision, shouldProvision } from './should-provision.ts';
import type { SlowSet } from './slow-set.ts';
import { failedReason, type VolumeStore, waitingReason } from './volume-store.ts';

export interface ClaimSyncerOptions {
  provisionerName: string;
  isKnownProvisioner: (name: string) => boolean;
  provisioner: Provisioner;
  observer: Required<ProvisionObserver>;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Lister<PersistentVolume>;
  classes: Lister<StorageClass>;
  client: KubeClient;
  recorder: Recorder;
  store: VolumeStore;
  slowSet: SlowSet;
  metrics: ControllerMetrics;
  addFinalizer: boolean;
  volumeName: (claim: PersistentVolumeClaim) => string;
  /** Names of volumes that were saved and may not be in the cache yet. */
  recentlySaved: { has(volumeName: string): boolean };
  clock: Clock;
  logger: Logger;
}

/** How a turn ended well: with a new volume, or with a reason why there is nothing to do now. */
export type ClaimOutcome = 'provisioned' | 'gone' | 'not-now' | 'stopped';

/** The attempt ended and must not be repeated by itself. Counted as failed, as in the original. */
class Stop extends Error {}

export class ClaimSyncer {
  readonly #options: ClaimSyncerOptions;
  /**
   * Claims whose volume may be in the making at the backend, as they were when last tried: they are provisioned to the
   * end even if they are deleted meanwhile, so that the volume gets an owner and is cleaned up.
   */
  readonly #inProgress = new Map<string, PersistentVolumeClaim>();
  /** UIDs of claims that have their turn just now. */
  readonly #turns = new Set<string>();
  /** By UID: the missing class that a claim was last told to wait for. */
  readonly #toldOfClass = new Map<string, string>();
  /** By UID: version of our write that took the node off the claim, until the cache shows it. */
  readonly #rescheduled = new Map<string, string>();

  constructor(options: ClaimSyncerOptions) {
    this.#options = options;
  }

  /** The controller gives up on the claim until something changes. `settle` is to follow. */
  giveUp(uid: string): void {
    this.#inProgress.delete(uid);
  }

  /** How log lines name a claim: by namespace and name where those are known. */
  describe(uid: string): { claim?: string; uid: string } {
    const claim = this.#known(uid);
    return claim === undefined ? { uid } : { claim: objectKey(claim), uid };
  }

  #known(uid: string): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, uid)[0] ?? this.#inProgress.get(uid);
  }

  /** Whether its volume may be in the making: then each change of the claim needs a sync. */
  isInProgress(uid: string): boolean {
    return this.#inProgress.has(uid);
  }

  /**
   * The claim changed: forgets it, here and in the provisioner, once nothing more is to be done for it. Safe to repeat.
   *
   * @returns whether that is so.
   */
  settle(uid: string): boolean {
    if (this.#turns.has(uid) || this.#inProgress.has(uid)) return false; // looked at again when the turn ends
    const claim = this.#options.claims.byIndex(uidIndex, uid)[0];
    if (claim !== undefined && (claim.spec.volumeName ?? '') === '') return false;
    this.#toldOfClass.delete(uid);
    this.#options.slowSet.delete(uid);
    this.#rescheduled.delete(uid);
    this.#options.provisioner.forget?.(uid);
    return true;
  }

  /**
   * Brings one claim forward. Safe to repeat at any time.
   *
   * @throws when the claim must be tried again later.
   */
  async sync(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    this.#turns.add(uid);
    try {
      return await this.#turn(uid, signal);
    } finally {
      this.#turns.delete(uid);
      this.settle(uid);
    }
  }

  async #turn(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    const cached = this.#options.claims.byIndex(uidIndex, uid)[0];
    if (cached !== undefined) this.#checkVersion(cached);
    const claim = cached ?? this.#inProgress.get(uid);
    if (claim === undefined) {
      this.#options.logger.debug({ uid }, 'Claim in work queue no longer exists');
      return 'gone';
    }
    const outcome = await this.#syncClaim(claim, signal);
    this.#inProgress.delete(uid);
    return outcome;
  }

  /** @throws when the cached claim still has the node that we took off: on it there is no room. */
  #checkVersion(claim: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    const ours = this.#rescheduled.get(uid);
    if (ours === undefined) return;
    if (isOlderVersion(claim.metadata.resourceVersion, ours)) {
      throw new Error(`claim ${objectKey(claim)} was rescheduled and the cache does not show it yet`);
    }
    this.#rescheduled.delete(uid);
  }

  async #syncClaim(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<ClaimOutcome> {
    this.#checkSlowSet(claim);
    const { metrics, clock, logger } = this.#options;
    const labels = metricLabels(claim);
    let decision: ClaimDecision;
    try {
      decision = await this.#decide(claim, signal);
      if (!decision.provision) {
        // that a claim has its volume is no news, and said of every one at each resync
        const level = decision.reason === 'bound' ? 'trace' : 'debug';
        logger[level]({ claim: objectKey(claim), reason: decision.reason }, 'Not provisioning the claim now');
        if (decision.reason !== 'class-missing') return 'not-now';
        throw this.#classMissing(claim, decision.className);
      }
      const { name } = decision.storageClass.metadata;
      logger.debug({ claim: objectKey(claim), class: name, node: selectedNode(claim) }, 'Provisioning the claim');
    } catch (error) {
      metrics.provisionFailed(labels);
      throw error;
    }
    const startedMs = clock.monotonicMs();
    try {
      await this.#provision(claim, decision.storageClass, signal);
    } catch (error) {
      metrics.provisionFailed(labels);
      if (!(error instanceof Stop)) throw error;
      logger.debug({ claim: objectKey(claim), reason: error.message }, 'Provisioning stopped');
      return 'stopped';
    }
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
    const storageClass = await this.#readClass(claim, decision.className, signal);
    if (storageClass === undefined) return decision;
    return shouldProvision({ claim, qualifies: () => true, isKnownProvisioner, getClass: () => storageClass });
  }

  /**
   * Reads a class live before a claim is first said to wait for it: the two are often applied together, and the caches
   * show them in any order.
   */
  async #readClass(claim: PersistentVolumeClaim, name: string, signal: AbortSignal): Promise<StorageClass | undefined> {
    if (name === '' || this.#toldOfClass.get(claimUid(claim)) === name) return undefined;
    try {
      return await this.#options.client.get<StorageClass>(storageClasses, { name }, { signal });
    } catch (error) {
      // a TypeError: no object can have such a name
      if (error instanceof NotFoundError || error instanceof ForbiddenError || error instanceof TypeError)
        return undefined;
      throw error;
    }
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

  /** @throws {Stop} when there is nothing to do or to retry, anything else for a retry. */
  async #provision(claim: PersistentVolumeClaim, storageClass: StorageClass, signal: AbortSignal): Promise<void> {
    const { provisioner, observer, store, recorder, addFinalizer } = this.#options;
    const volumeName = this.#options.volumeName(claim);
    const reference = claimReference(claim);
    await this.#admit(claim, volumeName, storageClass, signal);
    const key = objectKey(claim);
    recorder.event(
      reference,
      'Normal',
      'Provisioning',
      `External provisioner is provisioning volume for claim ${JSON.stringify(key)}`,
    );
    const options: ProvisionOptions = { storageClass, volumeName, claim, selectedNodeName: selectedNode(claim) };
    let made: PersistentVolume;
    try {
      made = await provisioner.provision(options, { signal });
    } catch (error) {
      if (!(error instanceof IgnoredError)) observer.onProvisionFailed(toProvisionError(error), options);
      throw await this.#afterFailure(claim, error, signal);
    }
    const volume = completeVolume(made, { claim, storageClass, addFinalizer });
    observer.onProvisioned(volume, options);
    try {
      await store.save(claim, volume);
    } catch (error) {
      this.#inProgress.delete(claimUid(claim)); // the store cleaned up: nothing runs in the background
      throw error;
    }
  }

  /** The last checks before the backend is asked; none of them touches it. */
  async #admit(
    claim: PersistentVolumeClaim,
    volumeName: string,
    storageClass: StorageClass,
    signal: AbortSignal,
  ): Promise<void> {
    const { provisioner, provisionerName, volumes, recentlySaved, recorder, client } = this.#options;
    const existing = volumes.get(volumeName);
    if (existing !== undefined || recentlySaved.has(volumeName)) {
      if (existing !== undefined && !(await isReservedFor(claim, existing, { client, signal }))) {
        const message = `PersistentVolume ${JSON.stringify(volumeName)} exists already and is not for this claim. Delete it, or recreate the claim`;
        recorder.event(claimReference(claim), 'Warning', failedReason, message);
      }
      throw new Stop(`volume ${volumeName} exists already`);
    }
    if (claim.spec.volumeMode === 'Block' && provisioner.supportsBlock?.({ signal }) !== true) {
      const message = `${provisionerName} does not support block volume provisioning`;
      recorder.event(claimReference(claim), 'Warning', failedReason, message);
      throw new Stop(message);
    }
    if (!this.#options.isKnownProvisioner(storageClass.provisioner)) {
      const { name } = storageClass.metadata;
      const asked = requestedProvisioner(claim) ?? '';
      const message = `StorageClass ${JSON.stringify(name)} names provisioner ${JSON.stringify(storageClass.provisioner)}, and the claim asks for ${JSON.stringify(asked)}. Nothing is provisioned until both agree`;
      recorder.event(claimReference(claim), 'Warning', failedReason, message);
      throw new Stop(message);
    }
  }

  /** Tells the claim's owner once, since the retries alone tell nobody. @returns what the turn fails with. */
  #classMissing(claim: PersistentVolumeClaim, name: string): Error {
    const uid = claimUid(claim);
    if (this.#toldOfClass.get(uid) !== name) {
      this.#toldOfClass.set(uid, name);
      const message =
        name === ''
          ? 'Waiting for a StorageClass: the claim names none. Make it anew with one'
          : `Waiting for StorageClass ${JSON.stringify(name)}, which does not exist. Create it, or make the claim anew with another`;
      this.#options.recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    }
    return new Error(`storageClass ${JSON.stringify(name)} not found`);
  }

  /** Notes what a failed attempt means and returns what the turn ends with; the first row that fits wins. */
  async #afterFailure(claim: PersistentVolumeClaim, error: unknown, signal: AbortSignal): Promise<Error> {
    if (error instanceof IgnoredError) return new Stop(error.message);
    const failure = toProvisionError(error);
    const { recorder, slowSet, classes, logger } = this.#options;
    const uid = claimUid(claim);
    if (failure.infeasible) {
      recorder.event(
        claimReference(claim),
        'Warning',
        failedReason,
        `Volume provisioning failed with infeasible error. Retries will be delayed. ${failure.message}`,
        { logged: true },
      );
      const classUid = classes.get(className(claim))?.metadata.uid;
      if (classUid !== undefined) slowSet.add(uid, classUid);
      this.#inProgress.delete(uid);
      return failure;
    }
    recorder.event(claimReference(claim), 'Warning', failedReason, failure.message, { logged: true });
    if (failure.state === 'reschedule' && claim.metadata.annotations?.[selectedNodeKey] !== undefined) {
      if (await this.#reschedule(claim, signal)) {
        logger.info({ err: failure, claim: objectKey(claim) }, 'Another node is to be selected for the claim');
        return new Stop('another node is to be selected');
      }
    }
    if (failure.state === 'in-background') this.#inProgress.set(uid, claim);
    else if (failure.state !== 'no-change') this.#inProgress.delete(uid);
    return failure;
  }

  /** Takes the node off the claim so that the scheduler chooses again; false when it could not be done. */
  async #reschedule(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const { [selectedNodeKey]: _node, ...annotations } = claim.metadata.annotations ?? {};
    const update = { ...claim, metadata: { ...claim.metadata, annotations } };
    try {
      const { metadata } = await this.#options.client.update(persistentVolumeClaims, update, { signal });
      if (metadata.resourceVersion !== undefined) this.#rescheduled.set(claimUid(claim), metadata.resourceVersion);
      return true;
    } catch (error) {
      const { recorder, logger } = this.#options;
      logger.info({ err: error, claim: objectKey(claim) }, 'The selected node could not be taken off the claim');
      if (error instanceof ForbiddenError) {
        const message = `The selected node could not be taken off the claim, so that another is chosen: ${error.message}`;
        recorder.event(claimReference(claim), 'Warning', failedReason, message);
      }
      return false;
    }
  }
}

/** Whatever else a provisioner throws: the attempt failed and nothing runs. Who knows better throws a `ProvisionError`. */
function toProvisionError(error: unknown): ProvisionError {
  if (error instanceof ProvisionError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ProvisionError(message, { state: 'finished', cause: error });
}

function metricLabels(claim: PersistentVolumeClaim): { class: string; source: string } {
  return { class: claim.spec.storageClassName ?? '', source: claim.spec.dataSource?.kind ?? '' };
}
