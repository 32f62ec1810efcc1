/** The syncs of claims, and what is kept of a claim from one to the next. */
import type { Lister } from '../../kube/cache/store.ts';
import { objectKey } from '../../kube/kube-object.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { uidIndex } from '../cache/informers.ts';
import { namesVolume } from '../claim-fields.ts';
import { meaningFields } from '../event-reasons.ts';
import type { Intents } from '../intents/intents.ts';
import type { LastErrors } from '../last-errors.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import type { Provisioner } from '../provisioner.ts';
import { type RunOptions, runWorkers, type SyncEnd } from '../run-workers.ts';
import type { ClaimTraces } from '../sync-traces.ts';
import type { ClaimWaits } from '../waits.ts';
import type { AttemptSteps } from './attempt-steps.ts';
import type { ClaimAttempt, ClaimOutcome } from './claim-attempt.ts';
import type { ClaimState, ClaimStates, InfeasibleClaims } from './claim-states.ts';
import type { FairOrder } from './fair-order.ts';

interface ClaimSyncerOptions {
  attempt: ClaimAttempt;
  /** As of the attempt. */
  steps: AttemptSteps;
  provisioner: Pick<Provisioner, 'forget'>;
  claims: Lister<PersistentVolumeClaim>;
  waits: Pick<ClaimWaits, 'delete'>;
  infeasibleClaims: InfeasibleClaims;
  /** Undefined: they are not kept. */
  lastErrors: LastErrors | undefined;
  claimQueue: WorkQueue;
  claimOrder: Pick<FairOrder, 'succeeded'>;
  /** What is kept of each claim from one sync to the next. */
  states: ClaimStates;
  /** What may be under way at a `Recoverable` provisioner. */
  intents: Pick<Intents, 'get' | 'forget'>;
  /** Undefined: nothing is traced. */
  traces: ClaimTraces | undefined;
}

interface ClaimWorkersOptions extends Required<RunOptions> {
  /** Max claims that are synced at the same time. */
  workers: number;
  /** As in `WorkersOptions`. */
  failureThreshold: number;
  /** As in `WorkersOptions`. */
  timeoutMs: number;
}

export class ClaimSyncer {
  readonly #options: Environment & ClaimSyncerOptions;

  constructor(environment: Environment, options: ClaimSyncerOptions) {
    this.#options = { ...environment, ...options };
  }

  /** Queues the claim; a worker of `run` takes it. Safe to repeat. */
  enqueue(uid: string): void {
    this.#options.claimQueue.add(uid);
  }

  /** Works until it is stopped, then finishes what is under way. To be called once. */
  async run({ workers, ...limits }: ClaimWorkersOptions): Promise<void> {
    const { attempt, claimQueue, states, traces, infeasibleClaims, meaningOf, clock, logger } = this.#options;
    await runWorkers({
      ...limits,
      queue: claimQueue,
      count: workers,
      sync: async (uid, signal) => {
        const state = states.of(uid);
        state.isSyncing = true;
        try {
          const run = (): Promise<ClaimOutcome> => attempt.run(uid, signal);
          return this.#endOf(uid, state, traces === undefined ? await run() : await traces.attempt(uid, run));
        } finally {
          state.isSyncing = false;
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

  #endOf(uid: string, state: ClaimState, outcome: ClaimOutcome): SyncEnd {
    const { claimQueue, claimOrder, infeasibleClaims, lastErrors, logger } = this.#options;
    if (outcome.kind === 'waits') {
      state.isWaiting = true;
      lastErrors?.add(uid, outcome.error);
      logger.debug({ ...this.#describe(uid), err: outcome.error }, 'The claim waits');
      return { next: 'back-off' };
    }
    const hasWaited = state.isWaiting;
    state.isWaiting = false;
    if (outcome.kind === 'failed') {
      lastErrors?.add(uid, outcome.error);
      if (hasWaited) claimQueue.forget(uid); // what it waited for were no failures
      return { next: 'retry', error: outcome.error };
    }
    if (outcome.kind === 'held-back') return { next: 'time', afterMs: infeasibleClaims.leftMs(uid) };
    if (outcome.kind === 'provisioned') claimOrder.succeeded(uid);
    return { next: 'change' };
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
    const { states, waits, lastErrors, traces, intents, provisioner } = this.#options;
    if (states.get(uid)?.isSyncing === true || this.isInProgress(uid)) return false; // the end of the sync calls this again
    const claim = this.#cached(uid);
    if (claim !== undefined && !namesVolume(claim)) return false;
    states.drop(uid);
    waits.delete(uid);
    lastErrors?.delete(uid);
    traces?.settled(uid);
    intents.forget(uid);
    provisioner.forget?.(uid);
    return true;
  }

  #cached(uid: string): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, uid)[0];
  }
}
