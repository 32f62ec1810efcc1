/** Revokes volumes that no claim wants any more, with workers of its own: it never holds up a claim. */
import { whenPermitted, withRecheck } from '../../base/permit.ts';
import { Slots } from '../../base/slots.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { uidIndex } from '../cache/informers.ts';
import type { SeenVolume } from '../cache/volume-log.ts';
import { claimReference, type ClaimWish } from '../claim-fields.ts';
import { failedReason } from '../event-reasons.ts';
import { isUnproved } from '../intent-journal/intent-journal.ts';
import type { JournalMetrics } from '../intent-journal/journal-metrics.ts';
import {
  begunOf,
  type Deleting,
  handleToDelete,
  isBeingDeleted,
  isUndone,
  knownHandle,
  quietAtMs,
  revocableAtMs,
  type Revoking,
} from '../intents/intent-state.ts';
import { type Intent, intentWait, logFields, type WaitReason } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import { ProvisionError } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import { type RunOptions, runWorkers } from '../run-workers.ts';
import { storedVolume, wholeVolume } from '../volume/stored-volume.ts';
import type { VolumeStore } from '../volume/volume-store.ts';
import { type DeletionGuard, DeletionRefusedError, type Refusal } from './deletion-guard.ts';
import { revokePauses, type RevokeQueue } from './revoke-queue.ts';

/** Max volumes that are revoked at the same time: most of them wait for a proof, whose requests they share. */
const maxWorkers = 1000;
/** Pause until a proof whose history is still being read is tried again, in milliseconds. */
const proofPauseMs = 2000;
/** How long a deletion may wait for its turn before what was read for its proof is read again, in milliseconds. */
const maxProofAgeMs = 5000;
/** Pause until a claim that wants its volume after all is synced, in milliseconds: the cache may not show that yet. */
const wantedPauseMs = 1000;

interface RevokerOptions {
  queue: RevokeQueue;
  intents: Intents;
  /** How long a call to the backend may take, in milliseconds. */
  maxCallMs: number;
  guard: DeletionGuard;
  provisioner: Recoverable;
  store: VolumeStore;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Lister<PersistentVolume>;
  metrics: JournalMetrics;
  /** In which a claim is synced again: it gets its volume, or another one, or is settled. */
  claimQueue: Pick<WorkQueue, 'addAfter'>;
}

export class Revoker {
  readonly #options: Environment & RevokerOptions;
  /** The wait of an intent that was logged last. */
  readonly #logged = new WeakMap<Intent, WaitReason | undefined>();
  #slots = new Slots(1);

  constructor(environment: Environment, options: RevokerOptions) {
    this.#options = { ...environment, ...options };
  }

  /**
   * Works until it is stopped, then finishes what is under way. To be called once.
   *
   * @param options.claimWorkers - how many claims are worked on at the same time: at most half as many calls to the backend are made.
   */
  async run({ stop, abort, claimWorkers }: Required<RunOptions> & { claimWorkers: number }): Promise<void> {
    const { queue, clock, logger } = this.#options;
    this.#slots = new Slots(Math.ceil(claimWorkers / 2));
    await runWorkers({
      queue: queue.keys,
      count: maxWorkers,
      sync: (uid, signal) => this.#sync(uid, signal),
      describe: (uid) => this.#describe(uid),
      what: 'volume to revoke',
      failureThreshold: 0,
      timeoutMs: 0,
      stop,
      abort,
      clock,
      logger,
    });
  }

  #describe(uid: string): object {
    const intent = this.#options.intents.get(uid);
    return intent === undefined ? { uid } : logFields(intent.record);
  }

  /** @throws for another attempt later. */
  async #sync(uid: string, signal: AbortSignal): Promise<void> {
    const { intents, queue, claimQueue, store } = this.#options;
    const intent = intents.get(uid);
    if (intent === undefined) return;
    const { state } = intent;
    if (state.kind === 'saved') {
      // the PersistentVolume may have disappeared meanwhile, such as when an older etcd was restored
      if (queue.closeNowOrAfterLateCalls(intent)) claimQueue.addAfter(uid, 0);
      return;
    }
    if (state.kind === 'stuck' && isUndone(state.was)) intents.on(intent, { type: 'unwanted' });
    if (!isUndone(intent.state) || intent.state.isWorking) return;
    if (!intent.state.mayExist) {
      await this.#close(intent, signal);
      return;
    }
    const { name } = intent.record.volume;
    intents.checkName(uid, name);
    // before any wait: the volume of a claim that is gone must not be saved meanwhile
    if (store.isUnsaved(name) && (await store.abandon(name)) === 'saved') {
      if (queue.closeNowOrAfterLateCalls(intent)) await this.#close(intent, signal);
      return;
    }
    if (await this.#leaveToVolume(intent, signal)) return;
    try {
      await this.#revoke(intent, signal);
    } catch (error) {
      this.#reportFailure(intent, error);
      await this.#afterFailure(intent, error, signal);
    } finally {
      intents.on(intent, { type: 'work-ended' });
    }
  }

  /**
   * If the PersistentVolume of the record exists, its reclaim policy decides about the storage: releases the source, and closes the
   * record once no earlier call can be under way.
   *
   * @returns whether the volume exists.
   */
  async #leaveToVolume(intent: Intent, signal: AbortSignal): Promise<boolean> {
    const { volumes, client, provisioner, claimQueue } = this.#options;
    const { volume, claim, plan } = intent.record;
    const { state } = intent;
    if (state.kind !== 'revoking' || state.problem !== undefined || intent.reportOnly !== undefined) return false;
    const cached = volumes.get(volume.name);
    if (cached === undefined) return false;
    const present = await wholeVolume(client, cached, signal);
    if (present === undefined || !this.#isItsVolume(intent, present)) return false;
    await provisioner.release?.(plan, { signal });
    if (this.#options.queue.closeNowOrAfterLateCalls(intent)) claimQueue.addAfter(claim.uid, 0);
    return true;
  }

  #isItsVolume(intent: Intent, volume: PersistentVolume): boolean {
    const { provisioner } = this.#options;
    if (provisioner.isElsewhere?.(volume) === true) return false;
    const claimUids = new Set([volume.spec.claimRef?.uid ?? '']);
    return this.#isFor(intent, { claimUids, storageKeys: new Set(provisioner.storageKeys(volume)) });
  }

  /** The same for one that is gone. Without a known handle it may be that of another instance, which uses the same names. */
  #wasItsVolume(intent: Intent, volume: SeenVolume): boolean {
    const mayBeElsewhere = this.#options.provisioner.isElsewhere !== undefined;
    return !(mayBeElsewhere && knownHandle(intent.state) === undefined) && this.#isFor(intent, volume);
  }

  #isFor(
    { record, state }: Intent,
    { claimUids, storageKeys }: Pick<SeenVolume, 'claimUids' | 'storageKeys'>,
  ): boolean {
    if (record.nameTaken === true || !claimUids.has(record.claim.uid)) return false;
    const handle = knownHandle(state);
    if (handle === undefined) return storageKeys.size > 0;
    return storageKeys.has(this.#options.provisioner.handleKey(handle));
  }

  /** How long the revoker must still wait before it sends anything to revoke the intent, in milliseconds; 0 or less: it need not. */
  #revocableInMs(intent: Intent, state: Revoking | Deleting): number {
    const { provisioner, clock } = this.#options;
    // what has nothing but its storage is looked for when it is quiet
    const isHeld = provisioner.release !== undefined && provisioner.holds?.(intent.record.plan) !== false;
    return revocableAtMs(state, { isClaimThere: this.#hasClaim(intent), isHeld }) - clock.monotonicMs();
  }

  /** Logs when storage is deleted, and why that waits; once, however often the backend comes back meanwhile. */
  #logWait(intent: Intent, waitMs: number): void {
    const { maxCallMs, clock, logger } = this.#options;
    const reason = intentWait(intent, clock.monotonicMs())?.reason;
    if (this.#logged.has(intent) && this.#logged.get(intent) === reason) return;
    this.#logged.set(intent, reason);
    const times = { afterSeconds: Math.ceil(waitMs / 1000), maxCallSeconds: maxCallMs / 1000 };
    logger.info(
      { ...logFields(intent.record), reason, ...times },
      'Storage that no claim wants is deleted once no call or save that was sent can still be carried out',
    );
  }

  async #revoke(intent: Intent, signal: AbortSignal): Promise<void> {
    const { guard, intents, metrics, logger } = this.#options;
    const isClaimThere = this.#hasClaim(intent);
    if (isClaimThere) await this.#checkUnwanted(intent, signal); // first: a claim that wants its volume waits for no proof
    if (!isUndone(intent.state)) return; // the claim has taken it back
    const waitMs = this.#revocableInMs(intent, intent.state);
    try {
      guard.checkRecord(intent); // before a wait, too: what cannot be proved keeps no other claim waiting for the name
    } catch (error) {
      const mayChange = ['pending', 'seen'].includes(refusalOf(error)?.kind ?? '');
      if (waitMs <= 0 || !mayChange) throw error;
    }
    const isClaimGone = !isClaimThere && (await this.#checkUnwanted(intent, signal)) === 'gone';
    if (waitMs > 0) {
      await this.#wait(intent, { isClaimGone, signal });
      return;
    }
    if (!isUndone(intent.state)) return;
    intents.on(intent, { type: 'work-begun' });
    const isLook = handleToDelete(intent.state) === undefined;
    if (isLook) await intents.onWritten(intent, { type: 'looks' }, signal);
    try {
      await this.#callRevoke(intent, signal);
    } catch (error) {
      if (refusalOf(error)?.kind === 'too-early') {
        await this.#wait(intent, { isClaimGone, signal });
        return;
      }
      if (!(error instanceof ProvisionError) || error.afterUnclear !== 'absent') throw error;
    }
    if (isBeingDeleted(intent.state)) {
      metrics.revoked();
      logger.info(logFields(intent.record), 'Deleted the storage of a volume that no claim wants');
    }
    await this.#closeOrGoOn(intent, signal);
  }

  /** Waits until it is quiet. What is held besides the storage is released once nothing but the storage is left to delete. */
  async #wait(intent: Intent, { isClaimGone, signal }: { isClaimGone: boolean; signal: AbortSignal }): Promise<void> {
    const { intents, provisioner, claimQueue } = this.#options;
    const { claim, plan } = intent.record;
    const hasLooked = isUndone(intent.state) && intent.state.isWorking;
    if (intent.state.kind === 'revoking') {
      const isNew = !intent.state.isWaitRecorded;
      if (isNew) await intents.onWritten(intent, { type: 'waits', isClaimGone }, signal);
      if (isNew && isUndone(intent.state) && handleToDelete(intent.state) !== undefined)
        await provisioner.release?.(plan, { signal });
    }
    intents.on(intent, { type: 'work-ended' });
    if (!isUndone(intent.state)) return;
    const waitMs = this.#revocableInMs(intent, intent.state);
    const { unread } = intent.state.calls;
    this.#logWait(intent, waitMs);
    this.#options.queue.keys.addAfter(claim.uid, unread === undefined ? Math.max(waitMs, 0) : proofPauseMs);
    if (hasLooked && this.#hasClaim(intent)) claimQueue.addAfter(claim.uid, 0); // what it wants could not be decided meanwhile
  }

  /** @throws {DeletionRefusedError} when the claim wants the volume, and nothing was deleted yet. */
  async #checkUnwanted(intent: Intent, signal: AbortSignal): Promise<ClaimWish> {
    if (isBeingDeleted(intent.state)) return 'gone';
    const wish = await this.#options.guard.wish(intent.record, signal);
    if (wish === 'wanted' || wish === 'has-it') throw new DeletionRefusedError('wanted', 'the claim wants the volume');
    return wish;
  }

  #hasClaim({ record }: Intent): boolean {
    return this.#options.claims.byIndex(uidIndex, record.claim.uid).length > 0;
  }

  /** Nothing is left now. Closes the record, unless a call that creates the storage may still be under way. */
  async #closeOrGoOn(intent: Intent, signal: AbortSignal): Promise<void> {
    const { intents, provisioner, clock, claimQueue } = this.#options;
    const { record } = intent;
    const { uid } = record.claim;
    if (await intents.onWritten(intent, { type: 'nothing-left', isWanted: false }, signal)) {
      await this.#close(intent, signal);
      return;
    }
    await provisioner.release?.(record.plan, { signal });
    intents.on(intent, { type: 'work-ended' });
    const begun = begunOf(intent.state);
    const waitMs = begun === undefined ? 0 : Math.max(0, quietAtMs(begun) - clock.monotonicMs());
    this.#logWait(intent, waitMs);
    this.#options.queue.keys.addAfter(uid, Math.min(waitMs, revokePauses.maxMs));
    if (this.#hasClaim(intent)) claimQueue.addAfter(uid, 0); // one that wants a volume need not wait
  }

  /** Calls the backend, in a slot that it gives up while it waits for a proof. */
  async #callRevoke(intent: Intent, signal: AbortSignal): Promise<void> {
    const { intents, provisioner } = this.#options;
    const permit = withRecheck(this.#options.permit, () => intents.checkOwned(intent));
    const { plan } = intent.record;
    await this.#slots.take();
    try {
      await whenPermitted(permit, signal, () =>
        provisioner.revoke(plan, {
          signal,
          permit,
          handle: isUndone(intent.state) ? handleToDelete(intent.state) : undefined,
          beforeDelete: (found) => this.#proveDeletion(intent, found, signal),
        }),
      );
    } finally {
      this.#slots.give();
    }
  }

  /**
   * Proves that the storage may be deleted, without a slot, as this waits. Where the slot has to be waited for afterwards, as others hang at
   * the backend, it is proved once more with the slot.
   */
  async #proveDeletion(intent: Intent, found: string, signal: AbortSignal): Promise<void> {
    const { guard, clock } = this.#options;
    let provedAtMs = -Infinity;
    const prove = async (): Promise<void> => {
      const isClaimThere = this.#hasClaim(intent);
      await guard.beforeDelete(intent, found, { wantedByClaim: false, isClaimThere, signal });
      provedAtMs = clock.monotonicMs();
    };
    await this.#slots.without(prove);
    const isOld = clock.monotonicMs() - provedAtMs > maxProofAgeMs;
    if (isOld || !guard.holdsStill(intent, found)) await prove();
  }

  /** @throws for another attempt later. */
  async #afterFailure(intent: Intent, error: unknown, signal: AbortSignal): Promise<void> {
    const { intents, queue, claimQueue, logger } = this.#options;
    signal.throwIfAborted();
    if (error instanceof ProvisionError) {
      await this.#afterFailedCall(intent, error, signal);
      return;
    }
    if (!(error instanceof DeletionRefusedError)) throw error;
    const { refusal, message: text } = error;
    const { uid } = intent.record.claim;
    switch (refusal.kind) {
      case 'wanted':
        if (!this.#hasClaim(intent)) throw error; // the cache is behind, the claim cannot be synced yet
        await intents.onWritten(intent, { type: 'wanted' }, signal);
        claimQueue.addAfter(uid, wantedPauseMs);
        break;
      case 'pending':
        intents.on(intent, { type: 'proof-pending', text });
        if (intent.state.kind === 'stuck') await this.#afterStuck(intent, signal);
        else queue.keys.addAfter(uid, proofPauseMs);
        break;
      case 'seen':
        await this.#afterVolume(intent, refusal.volume, { text, signal });
        break;
      case 'unproved':
        await this.#unproved(intent, text, signal);
        break;
      case 'has-storage':
        logger.warn(
          { ...logFields(intent.record), err: error },
          'The storage is not deleted: a PersistentVolume refers to it',
        );
        await this.#close(intent, signal);
        break;
      case 'has-name':
      case 'stuck':
        intents.on(intent, { type: 'stuck', reason: refusal.kind === 'stuck' ? refusal.reason : 'undecidable', text });
        queue.keys.addAfter(uid, revokePauses.maxMs);
        break;
      case 'too-early': // between the proof and the call
        throw error;
    }
  }

  /** The backend has not done it. @throws the error for another attempt later. */
  async #afterFailedCall(intent: Intent, error: ProvisionError, signal: AbortSignal): Promise<void> {
    const { intents } = this.#options;
    const { state, afterUnclear, message: text } = error;
    if (state === 'in-background') intents.unclear(intent);
    if (afterUnclear === 'absent-if-repeated' && intents.on(intent, { type: 'no-room' })) {
      await this.#closeOrGoOn(intent, signal);
      return;
    }
    const isUndecidable = afterUnclear === 'undecidable';
    if (!isUndecidable && state !== 'finished' && state !== 'reschedule') throw error;
    intents.on(intent, { type: 'refused', text, isUndecidable });
    if (intent.state.kind !== 'stuck') throw error;
    await this.#afterStuck(intent, signal);
  }

  /**
   * A PersistentVolume has existed, so that the storage is no longer ours to decide about: it is kept, or was reclaimed. Where that
   * was not the volume of this record, it is not known what became of its storage.
   */
  async #afterVolume(
    intent: Intent,
    volume: SeenVolume,
    { text, signal }: { text: string; signal: AbortSignal },
  ): Promise<void> {
    const { client, logger } = this.#options;
    const present = await storedVolume(client, intent.record.volume.name, signal);
    if (present === undefined ? !this.#wasItsVolume(intent, volume) : !this.#isItsVolume(intent, present)) {
      await this.#unproved(intent, `${text}, and was not that of this claim, or had other storage`, signal);
      return;
    }
    if (present === undefined) {
      const fields = {
        ...logFields(intent.record),
        storage: [...volume.storageKeys],
        policy: volume.policy,
        phase: volume.phase,
      };
      // a later call may have created another one, after the storage of that volume was deleted
      if (knownHandle(intent.state) === undefined && begunOf(intent.state)?.isUnclear === true) {
        logger.warn(
          fields,
          'The PersistentVolume of a deleted claim was removed by others, and a call without a clear result may have created a second volume',
        );
      } else
        logger.info(
          fields,
          'The PersistentVolume of a deleted claim was removed by others: its storage is left as it is',
        );
    }
    await this.#close(intent, signal);
  }

  async #unproved(intent: Intent, why: string, signal: AbortSignal): Promise<void> {
    const mayBeDeleting = isBeingDeleted(intent.state); // a DeleteVolume that timed out could remove what the claim gets
    this.#options.intents.on(intent, { type: 'stuck', reason: 'unproved', text: why });
    await this.#afterStuck(intent, signal);
    if (this.#hasClaim(intent) && !mayBeDeleting) this.#options.claimQueue.addAfter(intent.record.claim.uid, 0);
  }

  /** An operator decides. The sources of what may be kept on purpose are free; what cannot be decided is tried rarely. */
  async #afterStuck(intent: Intent, signal: AbortSignal): Promise<void> {
    const { provisioner } = this.#options;
    if (isUnproved(intent.record)) await provisioner.release?.(intent.record.plan, { signal });
    else this.#options.queue.keys.addAfter(intent.record.claim.uid, revokePauses.maxMs);
  }

  /** A claim that still exists gets no new volume before this one is deleted. */
  #reportFailure(intent: Intent, error: unknown): void {
    const { claims, recorder } = this.#options;
    const [claim] = claims.byIndex(uidIndex, intent.record.claim.uid);
    const isTold =
      error instanceof ProvisionError || ['has-storage', 'has-name', 'stuck'].includes(refusalOf(error)?.kind ?? '');
    if (claim === undefined || !isTold) return;
    const { name } = intent.record.volume;
    const message = `The former volume ${name} is not deleted yet: ${(error as Error).message}`;
    recorder.event(claimReference(claim), 'Warning', failedReason, message);
  }

  /** Nothing is left of it, or a PersistentVolume stands for it. */
  async #close(intent: Intent, signal: AbortSignal): Promise<void> {
    const { intents, provisioner, claimQueue } = this.#options;
    await provisioner.release?.(intent.record.plan, { signal });
    await intents.closeNow(intent, signal);
    claimQueue.addAfter(intent.record.claim.uid, 0);
  }
}

function refusalOf(error: unknown): Refusal | undefined {
  return error instanceof DeletionRefusedError ? error.refusal : undefined;
}
