/** What the controller keeps of each claim from one sync to the next, and the rules that need it. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { shortValue } from '../../base/short-value.ts';
import { ForbiddenError, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { isOlderVersion, objectKey } from '../../kube/kube-object.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import { claimReference, claimUid } from '../claim-fields.ts';
import { failedReason, waitingReason } from '../event-reasons.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  selectedNodeKey,
  type StorageClass,
  storageClasses,
} from '../objects.ts';

/** Of one claim; dropped as a whole once the claim needs no more work. */
export interface ClaimState {
  /** A sync is under way. */
  isSyncing: boolean;
  /** The last sync has found that something else has to end first. */
  isWaiting: boolean;
  /** The class that the last event named as missing; empty: the claim names none. */
  missingClass: string | undefined;
  /** The last attempt was infeasible: no other one before this monotonic time, unless the class has another UID by then. */
  heldBack: { readonly untilMs: number; readonly classUid: string } | undefined;
  /** The resource version of our write that removed the selected node, until the cache shows it. */
  rescheduledVersion: string | undefined;
  /**
   * The claim as it was at the last attempt, while a provisioner that is not `Recoverable` may be creating its volume: attempts go on even if
   * it is deleted meanwhile, so that the volume gets an object and is reclaimed.
   */
  kept: PersistentVolumeClaim | undefined;
}

export class ClaimStates {
  readonly #states = new Map<string, ClaimState>();

  /** @param uid - of a claim. @returns its state, which is new and empty where nothing was kept. */
  of(uid: string): ClaimState {
    const known = this.#states.get(uid);
    if (known !== undefined) return known;
    const state: ClaimState = {
      isSyncing: false,
      isWaiting: false,
      missingClass: undefined,
      heldBack: undefined,
      rescheduledVersion: undefined,
      kept: undefined,
    };
    this.#states.set(uid, state);
    return state;
  }

  /** Undefined: nothing is kept of the claim. */
  get(uid: string): ClaimState | undefined {
    return this.#states.get(uid);
  }

  all(): IterableIterator<ClaimState> {
    return this.#states.values();
  }

  /** Safe to repeat. */
  drop(uid: string): void {
    this.#states.delete(uid);
  }
}

/** How long an infeasible claim is held back, in milliseconds; fixed, as in the Go sidecar. */
export const heldBackMs = 300_000;

/**
 * Claims whose provisioning can never succeed unchanged (the driver returned InvalidArgument): no new attempt for five
 * minutes, unless their class is recreated. The five minutes count from the first failure; repeats do not prolong them.
 */
export class InfeasibleClaims {
  readonly #clock: Clock;
  readonly #states: Pick<ClaimStates, 'of' | 'get' | 'all'>;

  constructor(options: { clock: Clock; states: Pick<ClaimStates, 'of' | 'get' | 'all'> }) {
    this.#clock = options.clock;
    this.#states = options.states;
  }

  add(claimUid: string, classUid: string): void {
    if (this.leftMs(claimUid) > 0) return;
    this.#states.of(claimUid).heldBack = { untilMs: this.#clock.monotonicMs() + heldBackMs, classUid };
  }

  /** To be called before an attempt; another class UID ends the wait at once. @returns whether the claim must wait. */
  mustWait(claimUid: string, classUid: string): boolean {
    const state = this.#states.get(claimUid);
    if (state?.heldBack === undefined) return false;
    if (state.heldBack.classUid === classUid && this.leftMs(claimUid) > 0) return true;
    state.heldBack = undefined;
    return false;
  }

  /** For how long the claim must wait unless its class is recreated, in milliseconds; 0: not at all. */
  leftMs(claimUid: string): number {
    const { untilMs = -Infinity } = this.#states.get(claimUid)?.heldBack ?? {};
    return Math.max(untilMs - this.#clock.monotonicMs(), 0);
  }

  clear(): void {
    for (const state of this.#states.all()) state.heldBack = undefined;
  }
}

export class MissingClasses {
  readonly #client: KubeClient;
  readonly #recorder: Recorder;
  readonly #states: Pick<ClaimStates, 'of' | 'get'>;

  constructor(options: { client: KubeClient; recorder: Recorder; states: Pick<ClaimStates, 'of' | 'get'> }) {
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#states = options.states;
  }

  /**
   * Reads a class live before it is first reported missing: class and claim are often applied together, and the caches
   * show them in any order.
   */
  async read(claim: PersistentVolumeClaim, name: string, signal: AbortSignal): Promise<StorageClass | undefined> {
    if (name === '' || this.#states.get(claimUid(claim))?.missingClass === name) return undefined;
    try {
      return await this.#client.get<StorageClass>(storageClasses, { name }, { signal });
    } catch (error) {
      // a TypeError: no object can have such a name
      if (error instanceof NotFoundError || error instanceof ForbiddenError || error instanceof TypeError)
        return undefined;
      throw error;
    }
  }

  /** Records the event once for each class; the retries are only logged. @returns what the attempt fails with. */
  report(claim: PersistentVolumeClaim, name: string): Error {
    const state = this.#states.of(claimUid(claim));
    if (state.missingClass !== name) {
      state.missingClass = name;
      const message =
        name === ''
          ? 'Waiting for a StorageClass: the claim names none'
          : `Waiting for StorageClass ${JSON.stringify(shortValue(name))}, which does not exist`;
      this.#recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    }
    return new Error(`storageClass ${JSON.stringify(shortValue(name))} not found`);
  }
}

/** Removes the selected node from claims for which it has no capacity, so that the scheduler selects another. */
export class Rescheduler {
  readonly #client: KubeClient;
  readonly #recorder: Recorder;
  readonly #logger: Logger;
  readonly #states: Pick<ClaimStates, 'of' | 'get'>;

  constructor(options: {
    client: KubeClient;
    recorder: Recorder;
    states: Pick<ClaimStates, 'of' | 'get'>;
    logger: Logger;
  }) {
    this.#states = options.states;
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#logger = options.logger;
  }

  /** @returns false when it could not be done; the log and, for a missing permission, an event say why. */
  async removeNode(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const { resourceVersion = '' } = claim.metadata; // a claim that has changed since is a conflict
    try {
      const live = await this.#client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim.metadata, { signal });
      const { [selectedNodeKey]: _node, ...annotations } = live.metadata.annotations ?? {};
      const update: PersistentVolumeClaim = { ...live, metadata: { ...live.metadata, resourceVersion, annotations } };
      const { metadata } = await this.#client.update(persistentVolumeClaims, update, { signal });
      this.#states.of(claimUid(claim)).rescheduledVersion = metadata.resourceVersion;
      return true;
    } catch (error) {
      this.#logger.info(
        { err: error, claim: objectKey(claim) },
        'The selected node could not be removed from the claim',
      );
      if (error instanceof ForbiddenError) {
        const message = `The selected node could not be removed from the claim to have another one selected: ${error.message}`;
        this.#recorder.event(claimReference(claim), 'Warning', failedReason, message);
      }
      return false;
    }
  }

  /**
   * Whether the cached claim still has the node that was removed. An API server that has been restored from a backup may never show our
   * write: if a live read is older than our write, too, the cached claim counts.
   */
  async isBehind(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const state = this.#states.get(claimUid(claim));
    const ours = state?.rescheduledVersion;
    if (state === undefined || ours === undefined) return false;
    if (isOlderVersion(claim.metadata.resourceVersion, ours)) {
      const live = await this.#client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim.metadata, { signal });
      if (!isOlderVersion(live.metadata.resourceVersion, ours)) return true;
    }
    state.rescheduledVersion = undefined;
    return false;
  }
}
