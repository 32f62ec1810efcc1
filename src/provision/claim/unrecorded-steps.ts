import type { Environment } from '../environment.ts';
import { whenPermitted } from '../../base/permit.ts';
import type { Attempt, AttemptSteps } from './attempt-steps.ts';
import { claimUid } from '../claim-fields.ts';
import type { ClaimStates } from './claim-states.ts';
import { completeVolume, volumeTemplate } from './complete-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { ProvisionError, Provisioner } from '../provisioner.ts';

export interface UnrecordedStepsOptions {
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
