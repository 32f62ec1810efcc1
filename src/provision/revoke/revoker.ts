/** Revokes volumes that no claim wants any more, with workers of its own: it never holds up a claim. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { type Permit, whenPermitted, withRecheck } from '../../base/permit.ts';
import { Slots } from '../../base/slots.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { ExponentialLimiter } from '../../kube/queue/rate-limiter.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { WorkQueue } from '../../kube/queue/work-queue.ts';
import { claimReference } from '../claim/claim-fields.ts';
import { type DeletionGuard, ReportOnlyError, WantedAgainError } from './deletion-guard.ts';
import { ProofPendingError, UnprovedError, VolumeExistsError, VolumeSeenError } from './deletion-proof.ts';
import { failedReason } from '../event-reasons.ts';
import type { JournalMetrics, ReportReason } from '../intent-journal/journal-metrics.ts';
import { uidIndex } from '../cache/informers.ts';
import {
  type Intent,
  keptForMs,
  knownHandle,
  maxProofMs,
  needsNoSecondRevoke,
  revocableAtMs,
  type WaitReason,
  waitReason,
} from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { ProvisionError } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import { storedVolume, wholeVolume } from '../volume/stored-volume.ts';
import type { SeenVolume } from './volume-log.ts';
import { NotReachedError } from './volume-log-reader.ts';
import type { RunOptions } from '../run-options.ts';
import { runWorkers } from '../run-workers.ts';
import type { VolumeStore } from '../volume/volume-store.ts';

/** Max volumes that are revoked at the same time: most of them wait for a proof, whose requests they share. */
const maxWorkers = 1000;
/** Pauses between attempts, in milliseconds; what is stuck is tried after the longest. */
const pauses = { baseMs: 1000, maxMs: 300_000 } as const;
/** A backend that has given nothing but final errors for so long is left to an operator, in milliseconds. */
const refusedMs = 30 * 60_000;
/** Pause until a record of another process is tried again, in milliseconds. */
const foreignPauseMs = 10_000;
/** Pause until a proof whose history is still being read is tried again, in milliseconds. */
const proofPauseMs = 2000;
/** How long a deletion may wait for its turn before what was read for its proof is read again, in milliseconds. */
const maxProofAgeMs = 5000;
/** Pause until a claim that wants its volume after all is synced, in milliseconds: the cache may not show that yet. */
const wantedPauseMs = 1000;

export interface RevokerOptions {
  intents: Intents;
  guard: DeletionGuard;
  provisioner: Recoverable;
  client: KubeClient;
  store: VolumeStore;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Lister<PersistentVolume>;
  metrics: JournalMetrics;
  recorder: Recorder;
  permit: Permit | undefined;
  clock: Clock;
  logger: Logger;
  /** Has the claim synced again after so many milliseconds: it gets its volume, or another one, or is settled. */
  onReleased: (uid: string, afterMs: number) => void;
}

export class Revoker {
  readonly #options: RevokerOptions;
  readonly #queue: WorkQueue;
  /** The wait of an intent that was logged last. */
  readonly #logged = new WeakMap<Intent, WaitReason | undefined>();
  /** Those whose first revoke has found nothing: if the second one deletes, that is the deletion that is logged and counted. */
  readonly #notFound = new WeakSet<Intent>();
  #slots = new Slots(1);

  constructor(options: RevokerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ limiter: new ExponentialLimiter(pauses), clock: options.clock });
  }

  /** Revokes an intent whose claim does not want its volume any more. Safe to repeat. */
  add(intent: Intent): void {
    if (!intent.revoking) {
      this.#options.intents.lateCalls.keepForOthers(intent);
      intent.pendingSinceMs = undefined;
      intent.refusedSinceMs = undefined;
    }
    intent.revoking = true;
    this.#queue.add(intent.record.claim.uid);
  }

  /**
   * Closes the record of a volume that is saved: now, or once `keptForMs` has passed if a call that was given up, or one of another process,
   * may still be under way. Such a call could recreate storage that was deleted meanwhile, so while the record is open nothing is deleted.
   * As with `Intents.close`, the write to its Lease is not awaited. Safe to repeat.
   *
   * @returns whether it was closed now.
   */
  closeNowOrAfterLateCalls(intent: Intent): boolean {
    const { intents, clock } = this.#options;
    if (intent.served) return false;
    intents.lateCalls.keepForOthers(intent);
    const waitMs = keptForMs(intent, clock.monotonicMs());
    if (waitMs <= 0) {
      intents.close(intent);
      return true;
    }
    intent.served = true;
    this.#queue.addAfter(intent.record.claim.uid, waitMs);
    return false;
  }

  /** The backend is back: what failed is tried again within `withinMs` milliseconds. */
  retrySoon(withinMs: number): void {
    this.#queue.retrySoon(withinMs);
  }

  /**
   * Works until it is stopped, then finishes what is under way. To be called once.
   *
   * @param options.claimWorkers - how many claims are worked on at the same time: at most half as many calls to the backend are made.
   */
  async run({ stop, abort, claimWorkers }: Required<RunOptions> & { claimWorkers: number }): Promise<void> {
    const { intents, clock, logger } = this.#options;
    const count = maxWorkers;
    this.#slots = new Slots(Math.ceil(claimWorkers / 2));
    const sync = (uid: string, signal: AbortSignal): Promise<void> => this.#sync(uid, signal);
    const rest = {
      failureThreshold: 0,
      timeoutMs: 0,
      what: 'volume to revoke',
      describe: (uid: string) => this.#describe(uid),
      minPauseMs: (uid: string) => this.#waitMs(intents.get(uid)),
    };
    await runWorkers({ queue: this.#queue, count, sync, stop, abort, clock, logger, ...rest });
  }

  #describe(uid: string): object {
    const intent = this.#options.intents.get(uid);
    return intent === undefined ? { uid } : this.#named(intent);
  }

  /** @throws for another attempt later. */
  async #sync(uid: string, signal: AbortSignal): Promise<void> {
    const { intents, clock } = this.#options;
    const intent = intents.get(uid);
    if (intent?.served === true) {
      const leftMs = keptForMs(intent, clock.monotonicMs());
      if (leftMs > 0) {
        this.#queue.addAfter(uid, leftMs); // woken early, such as by the return of the backend
        return;
      }
      intents.close(intent);
      this.#options.onReleased(uid, 0); // the PersistentVolume may have disappeared meanwhile, such as when an older etcd was restored
      return;
    }
    if (intent?.revoking !== true) return;
    if (!intent.mayExist) {
      await this.#close(intent, signal);
      return;
    }
    if (intent.record.phase === 'unproved') {
      intent.revoking = false;
      return;
    }
    intents.checkName(uid, intent.record.volume.name);
    // before any wait: the volume of a claim that is gone must not be saved meanwhile
    if (await this.#wasSaved(intent)) {
      if (this.closeNowOrAfterLateCalls(intent)) await this.#close(intent, signal);
      return;
    }
    if (await this.#leaveToVolume(intent, signal)) return;
    const waitMs = this.#waitMs(intent);
    if (waitMs > 0) {
      if (intent.owner !== 'foreign') this.#logWait(intent, waitMs);
      this.#queue.addAfter(uid, waitMs);
      return;
    }
    try {
      await this.#revoke(intent, signal);
    } catch (error) {
      this.#reportFailure(intent, error);
      await this.#afterFailure(intent, error, signal);
    }
  }

  /**
   * If the PersistentVolume of the record exists, its reclaim policy decides about the storage: releases the source, and closes the
   * record once no earlier call can be under way.
   *
   * @returns whether the volume exists.
   */
  async #leaveToVolume(intent: Intent, signal: AbortSignal): Promise<boolean> {
    const { volumes, client, provisioner, onReleased } = this.#options;
    const { phase, volume, claim, plan } = intent.record;
    const isBegun = phase === 'create' || phase === 'unclear';
    if (!isBegun || intent.owner === 'foreign' || intent.deleteSent || intent.reportOnly !== undefined) return false;
    const cached = volumes.get(volume.name);
    if (cached === undefined) return false;
    const present = await wholeVolume(client, cached, signal);
    if (present === undefined || !this.#isItsVolume(intent, present)) return false;
    await provisioner.release?.(plan, { signal });
    if (this.closeNowOrAfterLateCalls(intent)) onReleased(claim.uid, 0);
    return true;
  }

  #isItsVolume({ record, foundHandle }: Intent, volume: PersistentVolume): boolean {
    const { provisioner } = this.#options;
    const { nameTaken = false, claim, handle = foundHandle } = record;
    if (nameTaken || provisioner.isElsewhere?.(volume) === true || volume.spec.claimRef?.uid !== claim.uid)
      return false;
    const keys = provisioner.storageKeys(volume);
    return handle === undefined ? keys.length > 0 : keys.includes(provisioner.handleKey(handle));
  }

  /** How long the revoker must still wait before it sends anything to revoke the intent, in milliseconds; 0 or less: it need not. */
  #waitMs(intent: Intent | undefined): number {
    if (intent === undefined) return 0;
    return intent.owner === 'foreign' ? foreignPauseMs : revocableAtMs(intent) - this.#options.clock.monotonicMs();
  }

  /** Logs when storage is deleted, and why that waits; once, however often the backend comes back meanwhile. */
  #logWait(intent: Intent, waitMs: number): void {
    const { intents, clock, logger } = this.#options;
    const reason = waitReason(intent, clock.monotonicMs());
    if (this.#logged.has(intent) && this.#logged.get(intent) === reason) return;
    this.#logged.set(intent, reason);
    const times = { afterSeconds: Math.ceil(waitMs / 1000), maxCallSeconds: intents.lateCalls.maxCallMs / 1000 };
    logger.info(
      { ...this.#named(intent), reason, ...times },
      'Storage that no claim wants is deleted once no call or save that was sent can still be carried out',
    );
  }

  /** Ends the attempts to save the volume. @returns whether one has succeeded. */
  async #wasSaved(intent: Intent): Promise<boolean> {
    const { store, intents } = this.#options;
    const { name } = intent.record.volume;
    if (!store.isUnsaved(name)) return false;
    if ((await store.abandon(name)) === 'saved') return true;
    intents.abandoned(intent);
    return false;
  }

  async #revoke(intent: Intent, signal: AbortSignal): Promise<void> {
    const { guard, intents, metrics, logger } = this.#options;
    const { record } = intent;
    const isClaimThere = this.#hasClaim(intent);
    if (isClaimThere) await this.#checkUnwanted(intent, signal); // first: a claim that wants its volume waits for no proof
    guard.checkRecord(intent);
    if (!isClaimThere) await this.#checkUnwanted(intent, signal);
    const isSecond = record.phase === 'revoked';
    if (isSecond) await intents.revokesAgain(intent, signal);
    let isDone = true;
    try {
      await this.#callRevoke(intent, signal);
    } catch (error) {
      const isFailure = error instanceof ProvisionError;
      if (isSecond && isFailure && error.state !== 'in-background') intents.foundNothing(intent);
      if (!isFailure || error.afterUnclear !== 'absent') throw error;
      isDone = false;
      this.#notFound.add(intent);
    }
    intent.pendingSinceMs = undefined;
    intent.refusedSinceMs = undefined;
    if (isDone && (!isSecond || this.#notFound.delete(intent))) {
      metrics.revoked();
      logger.info(this.#named(intent), 'Deleted the storage of a volume that no claim wants');
    }
    await this.#closeOrRevokeAgain(intent, signal);
  }

  /** @throws {WantedAgainError} when the claim wants the volume, and nothing was deleted yet. */
  async #checkUnwanted(intent: Intent, signal: AbortSignal): Promise<void> {
    if (intent.deleteSent) return;
    const wish = await this.#options.guard.wish(intent.record, signal);
    if (wish === 'wanted' || wish === 'has-it') throw new WantedAgainError('the claim wants the volume');
  }

  /** Whether the claim is in the cache. */
  #hasClaim({ record }: Intent): boolean {
    return this.#options.claims.byIndex(uidIndex, record.claim.uid).length > 0;
  }

  /**
   * Nothing is left now. Closes the record, unless a call that creates the storage may still be under way, or may have ended after the first
   * DeleteVolume was sent, even if a later DeleteVolume has succeeded: then keeps it for a second revoke.
   */
  async #closeOrRevokeAgain(intent: Intent, signal: AbortSignal): Promise<void> {
    const { intents, provisioner, clock, onReleased } = this.#options;
    const { record } = intent;
    const { uid } = record.claim;
    if (needsNoSecondRevoke(intent, clock.monotonicMs())) {
      await this.#close(intent, signal);
      return;
    }
    await provisioner.release?.(record.plan, { signal });
    await intents.revoked(intent, signal);
    const waitMs = Math.max(0, intent.lateUntilMs - clock.monotonicMs());
    this.#logWait(intent, waitMs);
    this.#queue.addAfter(uid, waitMs);
    // a claim that wants a volume need not wait for the second revoke
    if (this.#hasClaim(intent)) onReleased(uid, 0);
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
          handle: knownHandle(intent),
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
      await guard.beforeDelete(intent, found, { wantedByClaim: false, signal });
      intent.pendingSinceMs = undefined;
      provedAtMs = clock.monotonicMs();
    };
    await this.#slots.without(prove);
    const isOld = clock.monotonicMs() - provedAtMs > maxProofAgeMs;
    if (isOld || !guard.holdsStill(intent, found)) await prove();
  }

  /** @throws for another attempt later. */
  async #afterFailure(intent: Intent, error: unknown, signal: AbortSignal): Promise<void> {
    const { intents, logger, onReleased } = this.#options;
    signal.throwIfAborted();
    const { uid } = intent.record.claim;
    if (error instanceof WantedAgainError) {
      await intents.leaveDelete(intent, signal);
      if (!this.#hasClaim(intent)) throw error; // the cache is behind, the claim cannot be synced yet
      intent.revoking = false;
      onReleased(uid, wantedPauseMs);
      return;
    }
    const isPending = error instanceof ProofPendingError || error instanceof NotReachedError;
    if (error instanceof ProvisionError) intent.pendingSinceMs = undefined; // the backend was called: nothing was waited for
    if (isPending && this.#mayWait(intent)) {
      this.#queue.addAfter(uid, proofPauseMs);
      return;
    }
    if (error instanceof VolumeSeenError) {
      await this.#afterVolume(intent, error, signal);
      return;
    }
    if (isPending || error instanceof UnprovedError) {
      await this.#unproved(intent, error.message, signal);
      return;
    }
    if (error instanceof VolumeExistsError && error.holdsStorage) {
      logger.warn(
        { ...this.#named(intent), err: error },
        'The storage is not deleted: a PersistentVolume refers to it',
      );
      await this.#close(intent, signal);
      return;
    }
    if (error instanceof VolumeExistsError || error instanceof ReportOnlyError) {
      const reason = error instanceof ReportOnlyError ? error.reason : 'undecidable';
      this.#stuck(intent, reason, error.message);
      return;
    }
    if (!(error instanceof ProvisionError)) throw error;
    // in the phase `delete` it was the deletion that failed, which creates nothing
    if (error.state === 'in-background' && intent.record.phase !== 'delete') {
      intents.unclear(intent);
      if (!this.#hasClaim(intent)) intents.lateCalls.awaitOwn(intent); // a claim that exists would wait, too
    }
    if (error.afterUnclear === 'absent-if-repeated' && intents.noRoom(intent)) {
      await this.#closeOrRevokeAgain(intent, signal);
      return;
    }
    const isUndecided = error.afterUnclear === 'undecidable' || this.#isRefusedForLong(intent, error);
    if (isUndecided && intent.record.phase === 'revoked') {
      this.#reportDeletedOnce(intent, error);
      await this.#close(intent, signal);
      return;
    }
    if (isUndecided) {
      this.#stuck(intent, 'undecidable', error.message);
      return;
    }
    throw error;
  }

  /** It was deleted, and cannot be revoked a second time, such as without its Secret: nothing is left that could be retried. */
  #reportDeletedOnce(intent: Intent, error: Error): void {
    const { metrics, logger } = this.#options;
    metrics.reported('undecidable');
    logger.warn(
      { ...this.#named(intent), err: error },
      'A deleted volume cannot be revoked a second time: if a late call has created it again, audit shows it as unexplained',
    );
  }

  /** Whether a proof that could not be read yet may still come. */
  #mayWait(intent: Intent): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    intent.pendingSinceMs ??= nowMs;
    return nowMs - intent.pendingSinceMs < maxProofMs;
  }

  /**
   * A PersistentVolume has existed, so that the storage is no longer ours to decide about: it is kept, or was reclaimed. Where that
   * was not the volume of this record, it is not known what became of its storage.
   */
  async #afterVolume(intent: Intent, { volume, message }: VolumeSeenError, signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#options;
    const present = await storedVolume(client, intent.record.volume.name, signal);
    if (present === undefined ? !this.#wasItsVolume(intent, volume) : !this.#isItsVolume(intent, present)) {
      await this.#unproved(intent, `${message}, and was not that of this claim, or had other storage`, signal);
      return;
    }
    if (present === undefined) {
      const fields = {
        ...this.#named(intent),
        storage: [...volume.storageKeys],
        policy: volume.policy,
        phase: volume.phase,
      };
      logger.info(
        fields,
        'The PersistentVolume of a deleted claim was removed by others: its storage is left as it is',
      );
    }
    await this.#close(intent, signal);
  }

  /** As `#isItsVolume`, for a volume that is gone. Without a known handle it may be that of another instance, which uses the same names. */
  #wasItsVolume({ record, foundHandle }: Intent, { claimUids, storageKeys }: SeenVolume): boolean {
    const { provisioner } = this.#options;
    const { nameTaken = false, claim, handle = foundHandle } = record;
    if (nameTaken || !claimUids.has(claim.uid)) return false;
    if (handle === undefined) return storageKeys.size > 0 && provisioner.isElsewhere === undefined;
    return storageKeys.has(provisioner.handleKey(handle));
  }

  /** The sources of a volume that is no longer being created are free; a claim that wants it again gets it. */
  async #unproved(intent: Intent, why: string, signal: AbortSignal): Promise<void> {
    const { intents, provisioner, onReleased } = this.#options;
    await provisioner.release?.(intent.record.plan, { signal });
    const mayBeDeleting = intent.deleteSent; // a DeleteVolume that timed out could remove what the claim gets
    intents.unproved(intent, why);
    intent.revoking = false;
    if (this.#hasClaim(intent) && !mayBeDeleting) onReleased(intent.record.claim.uid, 0);
  }

  /**
   * Whether the backend neither creates the volume, which would be deleted then, nor reports that there is none. An earlier attempt may
   * have left it. What is being deleted is known to exist, and needs no decision.
   */
  #isRefusedForLong(intent: Intent, { state }: ProvisionError): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const isRefused = (state === 'finished' || state === 'reschedule') && intent.record.phase !== 'delete';
    intent.refusedSinceMs = isRefused ? (intent.refusedSinceMs ?? nowMs) : undefined;
    return nowMs - (intent.refusedSinceMs ?? nowMs) >= refusedMs;
  }

  /** A claim that still exists gets no new volume before this one is deleted. */
  #reportFailure(intent: Intent, error: unknown): void {
    const { claims, recorder } = this.#options;
    const [claim] = claims.byIndex(uidIndex, intent.record.claim.uid);
    const isTold =
      error instanceof ProvisionError || error instanceof VolumeExistsError || error instanceof ReportOnlyError;
    if (claim === undefined || !isTold) return;
    const { name } = intent.record.volume;
    const message = `The former volume ${name} is not deleted yet: ${error.message}`;
    recorder.event(claimReference(claim), 'Warning', failedReason, message);
  }

  #stuck(intent: Intent, reason: ReportReason, problem: string): void {
    this.#options.intents.stuck(intent, reason, problem);
    this.#queue.addAfter(intent.record.claim.uid, pauses.maxMs);
  }

  /** Nothing is left of it, or a PersistentVolume stands for it. */
  async #close(intent: Intent, signal: AbortSignal): Promise<void> {
    const { intents, provisioner, onReleased } = this.#options;
    await provisioner.release?.(intent.record.plan, { signal });
    await intents.closeNow(intent, signal);
    onReleased(intent.record.claim.uid, 0);
  }

  #named({ record: { claim, volume } }: Intent): object {
    return { claim: `${claim.namespace}/${claim.name}`, uid: claim.uid, volume: volume.name };
  }
}
