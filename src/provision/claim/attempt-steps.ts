/** The steps of an attempt in which provisioners differ, how one may end, and the steps of those that are not `Recoverable`. */
import { whenPermitted } from '../../base/permit.ts';
import { claimUid } from '../claim-fields.ts';
import type { Intent } from '../intents/intent.ts';
import { attemptWait } from '../last-errors.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import type { Provisioner, ProvisionError, ProvisionOptions } from '../provisioner.ts';
import { completeVolume, volumeTemplate } from '../volume-template.ts';
import type { ClaimStates } from './claim-states.ts';

/** How an attempt for a claim ends that has no volume to show. When the claim is synced next follows from it. */
export type AttemptEnd = Stopped | Waiting | Failed;

/** It is not retried until something changes. Counted as failed, as in the Go sidecar. */
export class Stopped {
  /** What has it tried again: see `claimWakes`. */
  readonly reason: StopReason;
  /** For the log and for status pages. */
  readonly message: string;

  constructor(reason: StopReason, message: string) {
    this.reason = reason;
    this.message = message;
  }
}

/** Something else has to end first: it is retried after the back-off, or once that has ended. Nothing has failed. */
export class Waiting {
  /** Says for what. */
  readonly error: Error;

  constructor(error: Error) {
    this.error = error;
  }
}

/** It is retried after the back-off. */
export class Failed {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** What an attempt ends with that was given up with this error. */
export function endOf(error: unknown): Waiting | Failed {
  return attemptWait(error) === undefined ? new Failed(error) : new Waiting(error as Error);
}

/**
 * Why an attempt has stopped.
 *
 * - `volume-exists`: a PersistentVolume has the name of the volume.
 * - `no-block`: the provisioner does not support block volumes.
 * - `class-differs`: class and claim name different provisioners.
 * - `served`, `claim-gone`, `node-changed`: the cache showed the claim as it was before.
 * - `node-removed`: the scheduler is to select another node.
 * - `ignored`: it is not for this provisioner.
 * - `abandoned`: the volume was not saved, as the claim does not want it any more, or another process serves it.
 */
export type StopReason =
  | 'volume-exists'
  | 'no-block'
  | 'class-differs'
  | 'served'
  | 'claim-gone'
  | 'node-changed'
  | 'node-removed'
  | 'ignored'
  | 'abandoned';

/** An attempt for a claim. */
export interface Attempt {
  options: ProvisionOptions;
  /** Its record; undefined before it is written, and where attempts are not recorded. */
  intent?: Intent | undefined;
}

/**
 * The steps of an attempt in which provisioners differ: those that are `Recoverable` have their attempts recorded, while for
 * the others only this process remembers which volumes may be in progress.
 */
export interface AttemptSteps {
  /** Whether something is recorded for the claim: then its deletion needs a sync, too. */
  hasRecord(uid: string): boolean;
  /** Whether the volume of the claim may be in progress: then each change of the claim needs a sync. */
  isInProgress(uid: string): boolean;
  /** The last known state of a claim whose volume must be created even though the claim no longer exists. */
  keptClaim(uid: string): PersistentVolumeClaim | undefined;
  /**
   * Continues what an earlier attempt has begun and recorded.
   *
   * @param claim - as it is now; undefined: it no longer exists.
   * @returns the attempt to pass to `provision`, or `nothing-to-do` where this process has nothing to do for it.
   * @throws when the claim must be requeued.
   */
  resume(
    uid: string,
    claim: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<Attempt | 'nothing-to-do'>;
  /** The cache shows a PersistentVolume of the claim's name, and the API server has none: its storage may be in use, or kept. */
  volumeIsGone(uid: string): void;
  /** The checks before anything is planned. @throws when the claim must be requeued. */
  admit(options: ProvisionOptions, signal: AbortSignal): Promise<Stopped | undefined>;
  /**
   * Creates the storage; where attempts are recorded, an attempt without a record is planned and recorded first.
   *
   * @returns the volume as it is to be saved.
   * @throws as `Provisioner.provision`, or as `Recoverable.plan` and `fulfil`, and what the journal throws.
   */
  provision(attempt: Attempt, signal: AbortSignal): Promise<PersistentVolume | Stopped>;
  /** The attempt has failed, and is to be retried. */
  failed(claim: PersistentVolumeClaim, failure: ProvisionError): void;
  /** The volume can never be saved: its name is taken, or nothing is done for it here any more. */
  unsaved(claim: PersistentVolumeClaim, volume: PersistentVolume): void;
  /** There is no retry until the claim changes: it has its volume, wants none now, or its attempts have stopped or were given up. */
  ended(uid: string): void;
}

interface UnrecordedStepsOptions {
  provisioner: Provisioner;
  states: Pick<ClaimStates, 'of' | 'get'>;
  addFinalizer: boolean;
}

/**
 * The steps of a provisioner that is not `Recoverable`: `provision` is called with the current class and claim, and only this
 * process knows what may be in progress.
 */
export class UnrecordedSteps implements AttemptSteps {
  readonly #options: Environment & UnrecordedStepsOptions;

  constructor(environment: Environment, options: UnrecordedStepsOptions) {
    this.#options = { ...environment, ...options };
  }

  hasRecord(): boolean {
    return false;
  }

  isInProgress(uid: string): boolean {
    return this.keptClaim(uid) !== undefined;
  }

  keptClaim(uid: string): PersistentVolumeClaim | undefined {
    return this.#options.states.get(uid)?.kept;
  }

  /** Never called, as there is no record. */
  resume(): Promise<'nothing-to-do'> {
    return Promise.resolve('nothing-to-do');
  }

  admit(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async provision({ options }: Attempt, signal: AbortSignal): Promise<PersistentVolume> {
    const { provisioner, permit, addFinalizer } = this.#options;
    const made = await whenPermitted(permit, signal, () => provisioner.provision(options, { signal, permit }));
    return completeVolume(made, volumeTemplate(options), { addFinalizer });
  }

  failed(claim: PersistentVolumeClaim, { infeasible, state }: ProvisionError): void {
    if (!infeasible && state === 'in-background') this.#options.states.of(claimUid(claim)).kept = claim;
    else if (infeasible || state !== 'no-change') this.#forget(claimUid(claim));
  }

  volumeIsGone(): void {
    // nothing is deleted because of a record
  }

  /** Its name is taken by another volume: no retry would save it. */
  unsaved(claim: PersistentVolumeClaim): void {
    this.#forget(claimUid(claim));
  }

  ended(uid: string): void {
    this.#forget(uid);
  }

  #forget(uid: string): void {
    const state = this.#options.states.get(uid);
    if (state !== undefined) state.kept = undefined;
  }
}
