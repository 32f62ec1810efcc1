import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { Intent } from '../intents/intent.ts';
import type { ProvisionError, ProvisionOptions } from '../provisioner.ts';

/** An attempt for a claim ended without a volume and is not retried until something changes. Counted as failed, as in the original. */
export class Stopped {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** An attempt for a claim. */
export interface Attempt {
  options: ProvisionOptions;
  /** What is recorded of it; undefined before that, and where nothing is recorded. */
  intent?: Intent | undefined;
}

/**
 * The steps of an attempt in which provisioners differ: those that are `Recoverable` have their attempts recorded, of the others
 * only this process remembers what may be in the making.
 */
export interface AttemptSteps {
  /** Whether something is recorded for the claim: also its deletion needs a sync. */
  hasRecord(uid: string): boolean;
  /** Whether the volume of the claim may be in the making: then each change of the claim needs a sync. */
  isInProgress(uid: string): boolean;
  /** A claim that does not exist any more, and whose volume is to be made all the same. */
  keptClaim(uid: string): PersistentVolumeClaim | undefined;
  /**
   * What an earlier attempt has left.
   *
   * @param claim - as it is now; undefined: it does not exist any more.
   * @returns an attempt to be carried out, `settled` when nothing is to be done or others do it, undefined when nothing is open.
   * @throws for another attempt later.
   */
  resume(
    uid: string,
    claim: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<Attempt | 'settled' | undefined>;
  /** The checks before anything is planned. @throws for another attempt later. */
  admit(options: ProvisionOptions, signal: AbortSignal): Promise<Stopped | undefined>;
  /** Plans and records. @throws as `Recoverable.plan`, and what the journal throws. */
  plan(options: ProvisionOptions, signal: AbortSignal): Promise<Attempt | Stopped>;
  /** Makes the storage. @returns the volume as it is to be saved. @throws as `Provisioner.provision`. */
  create(attempt: Attempt, signal: AbortSignal): Promise<PersistentVolume | Stopped>;
  /** The attempt has failed, and is to be retried. */
  failed(claim: PersistentVolumeClaim, failure: ProvisionError): void;
  /** The volume could not be saved, and the store has given it up or goes on in the background. */
  unsaved(claim: PersistentVolumeClaim, volume: PersistentVolume): void;
  /** No attempt for the claim is to be repeated until it changes. */
  ended(uid: string): void;
}
