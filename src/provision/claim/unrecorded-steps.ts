import { type Permit, whenPermitted } from '../../base/permit.ts';
import type { Attempt, AttemptSteps } from './attempt-steps.ts';
import { claimUid } from './claim-fields.ts';
import { completeVolume, volumeTemplate } from './complete-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { ProvisionError, Provisioner } from '../provisioner.ts';

export interface UnrecordedStepsOptions {
  provisioner: Provisioner;
  addFinalizer: boolean;
  permit: Permit | undefined;
}

/**
 * The steps of a provisioner that is not `Recoverable`: `provision` is called with the current class and claim, and only this
 * process knows what may be in progress.
 */
export class UnrecordedSteps implements AttemptSteps {
  readonly #options: UnrecordedStepsOptions;
  /**
   * Claims whose volume may be in progress, as they were at the last attempt: attempts go on even if they are deleted
   * meanwhile, so that the volume gets an object and is reclaimed.
   */
  readonly #kept = new Map<string, PersistentVolumeClaim>();

  constructor(options: UnrecordedStepsOptions) {
    this.#options = options;
  }

  hasRecord(): boolean {
    return false;
  }

  isInProgress(uid: string): boolean {
    return this.#kept.has(uid);
  }

  keptClaim(uid: string): PersistentVolumeClaim | undefined {
    return this.#kept.get(uid);
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
    if (!infeasible && state === 'in-background') this.#kept.set(claimUid(claim), claim);
    else if (infeasible || state !== 'no-change') this.#kept.delete(claimUid(claim));
  }

  volumeIsGone(): void {
    // nothing is deleted because of a record
  }

  /** Its name is taken by another volume: no retry would save it. */
  unsaved(claim: PersistentVolumeClaim): void {
    this.#kept.delete(claimUid(claim));
  }

  ended(uid: string): void {
    this.#kept.delete(uid);
  }
}
