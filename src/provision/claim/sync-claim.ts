/** The syncs of claims, and what is kept of a claim from one to the next. */
import { objectKey } from '../../kube/kube-object.ts';
import { ClaimAttempt, type ClaimAttemptOptions, type ClaimOutcome } from './claim-attempt.ts';
import type { ClaimTraces } from './claim-traces.ts';
import { uidIndex } from '../cache/informers.ts';
import type { Intents } from '../intents/intents.ts';
import { MissingClasses } from './missing-classes.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import { Rescheduler } from './rescheduler.ts';

export interface ClaimSyncerOptions extends Omit<ClaimAttemptOptions, 'missingClasses' | 'rescheduler'> {
  /** What may be under way at a `Recoverable` provisioner. */
  intents: Pick<Intents, 'get' | 'forget'>;
  /** Undefined: nothing is traced. */
  traces: ClaimTraces | undefined;
}

export class ClaimSyncer {
  readonly #options: ClaimSyncerOptions;
  readonly #attempt: ClaimAttempt;
  /** UIDs of claims whose sync is under way. */
  readonly #syncing = new Set<string>();
  readonly #missingClasses: MissingClasses;
  readonly #rescheduler: Rescheduler;

  constructor(options: ClaimSyncerOptions) {
    this.#options = options;
    this.#missingClasses = new MissingClasses(options);
    this.#rescheduler = new Rescheduler(options);
    this.#attempt = new ClaimAttempt({
      ...options,
      missingClasses: this.#missingClasses,
      rescheduler: this.#rescheduler,
    });
  }

  /**
   * Reconciles one claim. Safe to repeat at any time.
   *
   * @throws when the claim must be tried again later.
   */
  async sync(uid: string, signal: AbortSignal): Promise<ClaimOutcome> {
    const { traces, lastErrors } = this.#options;
    this.#syncing.add(uid);
    try {
      if (traces === undefined) return await this.#attempt.run(uid, signal);
      return await traces.attempt(uid, () => this.#attempt.run(uid, signal));
    } catch (error) {
      lastErrors?.add(uid, error);
      throw error;
    } finally {
      this.#syncing.delete(uid);
      this.forgetIfDone(uid);
    }
  }

  /** The controller gives up on the claim until something changes. `settle` is to follow. */
  giveUp(uid: string): void {
    this.#options.steps.ended(uid);
  }

  /** How log lines name a claim: by namespace and name where those are known. */
  describe(uid: string): { claim?: string; uid: string } {
    const { steps, intents } = this.#options;
    const claim = (this.#cached(uid) ?? steps.keptClaim(uid))?.metadata ?? intents.get(uid)?.record.claim;
    return claim === undefined ? { uid } : { claim: objectKey({ metadata: claim }), uid };
  }

  /** Whether something is recorded for the claim: then its deletion needs a sync, too. */
  hasRecord(uid: string): boolean {
    return this.#options.steps.hasRecord(uid);
  }

  /** Whether its volume may be in progress: then each change of the claim needs a sync. */
  isInProgress(uid: string): boolean {
    return this.#options.steps.isInProgress(uid);
  }

  /**
   * To be called when the claim has changed: forgets it, here and in the provisioner, once it needs no more work. Safe to repeat.
   *
   * @returns whether that is so.
   */
  forgetIfDone(uid: string): boolean {
    if (this.#syncing.has(uid) || this.isInProgress(uid)) return false; // the end of the sync calls this again
    const claim = this.#cached(uid);
    if (claim !== undefined && (claim.spec.volumeName ?? '') === '') return false;
    this.#missingClasses.forget(uid);
    this.#options.lastErrors?.delete(uid);
    this.#options.traces?.settled(uid);
    this.#options.infeasibleClaims.delete(uid);
    this.#rescheduler.forget(uid);
    this.#options.intents.forget(uid);
    this.#options.provisioner.forget?.(uid);
    return true;
  }

  #cached(uid: string): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, uid)[0];
  }
}
