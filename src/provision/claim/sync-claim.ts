/** The syncs of claims, and what is kept of a claim from one to the next. */
import { objectKey } from '../../kube/kube-object.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { ClaimAttempt, type ClaimAttemptOptions, type ClaimOutcome } from './claim-attempt.ts';
import { namesVolume } from './claim-fields.ts';
import type { ClaimTraces } from './claim-traces.ts';
import type { FairOrder } from './fair-order.ts';
import { uidIndex } from '../cache/informers.ts';
import type { Intents } from '../intents/intents.ts';
import { MissingClasses } from './missing-classes.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import { Rescheduler } from './rescheduler.ts';
import type { RunOptions } from '../run-options.ts';
import { runWorkers } from '../run-workers.ts';
import { meaningFields } from '../text-meaning.ts';
import { attemptWait } from './waiting-text.ts';

export interface ClaimSyncerOptions extends Omit<ClaimAttemptOptions, 'missingClasses' | 'rescheduler'> {
  claimQueue: WorkQueue;
  claimOrder: Pick<FairOrder, 'succeeded'>;
  /** What may be under way at a `Recoverable` provisioner. */
  intents: Pick<Intents, 'get' | 'forget'>;
  /** Undefined: nothing is traced. */
  traces: ClaimTraces | undefined;
}

export interface ClaimWorkersOptions extends Required<RunOptions> {
  /** Max claims that are synced at the same time. */
  workers: number;
  /** As in `WorkersOptions`. */
  failureThreshold: number;
  /** As in `WorkersOptions`. */
  timeoutMs: number;
}

export class ClaimSyncer {
  readonly #options: ClaimSyncerOptions;
  readonly #attempt: ClaimAttempt;
  /** UIDs of claims whose sync is under way. */
  readonly #syncing = new Set<string>();
  /** UIDs of claims whose last sync has found that something else has to end first. */
  readonly #waiting = new Set<string>();
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

  /** Queues the claim; a worker of `run` takes it. Safe to repeat. */
  enqueue(uid: string): void {
    this.#options.claimQueue.add(uid);
  }

  /** Works until it is stopped, then finishes what is under way. To be called once. */
  async run({ workers, ...limits }: ClaimWorkersOptions): Promise<void> {
    const { claimQueue, claimOrder, traces, infeasibleClaims, lastErrors, meaningOf, clock, logger } = this.#options;
    await runWorkers({
      ...limits,
      queue: claimQueue,
      count: workers,
      sync: async (uid, signal) => {
        this.#syncing.add(uid);
        try {
          const attempt = (): Promise<ClaimOutcome> => this.#attempt.run(uid, signal);
          const outcome = traces === undefined ? await attempt() : await traces.attempt(uid, attempt);
          this.#waiting.delete(uid);
          if (outcome === 'provisioned') claimOrder.succeeded(uid);
          if (outcome !== 'held-back') return outcome;
          claimQueue.addAfter(uid, infeasibleClaims.leftMs(uid));
          return 'waits';
        } catch (error) {
          lastErrors?.add(uid, error);
          if (attemptWait(error) === undefined) {
            if (this.#waiting.delete(uid)) claimQueue.forget(uid); // what it waited for were no failures
            throw error;
          }
          this.#waiting.add(uid);
          claimQueue.addRateLimited(uid);
          logger.debug({ ...this.#describe(uid), err: error }, 'The claim waits');
          return 'waits';
        } finally {
          this.#syncing.delete(uid);
          this.#forgetIfDone(uid); // not `settle`, as the queue still counts the failures of the claim
        }
      },
      minPauseMs: (uid) => infeasibleClaims.leftMs(uid),
      onGiveUp: (uid) => this.#giveUp(uid),
      what: 'claim',
      describe: (uid) => this.#describe(uid),
      ...(meaningOf && { describeError: (error) => meaningFields(error, meaningOf) }),
      clock,
      logger,
    });
  }

  #giveUp(uid: string): void {
    this.#options.steps.ended(uid);
    this.settle(uid);
  }

  /** How log lines name a claim: by namespace and name where those are known. */
  #describe(uid: string): { claim?: string; uid: string } {
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

  /** To be called when the claim has changed: drops all that is kept of it, once it needs no more work. Safe to repeat. */
  settle(uid: string): void {
    if (this.#forgetIfDone(uid)) this.#options.claimQueue.forget(uid);
  }

  /** Forgets the claim, here and in the provisioner, once it needs no more work. @returns whether that is so. */
  #forgetIfDone(uid: string): boolean {
    if (this.#syncing.has(uid) || this.isInProgress(uid)) return false; // the end of the sync calls this again
    const claim = this.#cached(uid);
    if (claim !== undefined && !namesVolume(claim)) return false;
    this.#waiting.delete(uid);
    this.#options.waits.delete(uid);
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
