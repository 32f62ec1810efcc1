/**
 * The last checks before storage that was created for a claim is deleted. Apart from the reclaim policy of a PersistentVolume,
 * nothing is deleted that may ever have had one.
 */
import type { Clock } from '../../base/clock.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { type ClaimWish, claimWish, type ClaimWishOptions, liveClaim, type WishedVolume } from '../claim-fields.ts';
import type { StuckReason } from '../intent-journal/intent-record.ts';
import type { Intent } from '../intents/intent.ts';
import { deletableAtMs, isBeingDeleted, mayBeSaved } from '../intents/intent-state.ts';
import type { Intents } from '../intents/intents.ts';
import { type DeletionProof, isNameUnique } from './deletion-proof.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import type { Recoverable } from '../recoverable.ts';

/** Nothing may be deleted because of this record. */
export class ReportOnlyError extends Error {
  override readonly name = 'ReportOnlyError';
  readonly reason: StuckReason;

  constructor(message: string, reason: StuckReason) {
    super(message);
    this.reason = reason;
  }
}

/** The claim wants the volume after all. */
export class WantedAgainError extends Error {
  override readonly name = 'WantedAgainError';
}

/** It is too early: an earlier request may still be under way. */
export class TooEarlyError extends Error {
  override readonly name = 'TooEarlyError';
}

export interface DeletionGuardOptions {
  clock: Clock;
  intents: Intents;
  proof: Pick<DeletionProof, 'check' | 'checkLive' | 'checkNew'>;
  provisioner: Recoverable;
  client: KubeClient;
  isKnownProvisioner: (name: string) => boolean;
}

export interface DeletionContext {
  /** The storage is deleted although the claim wants a volume, as it does not match the request. */
  wantedByClaim: boolean;
  /** The claim exists, and may wait for another volume. */
  isClaimThere: boolean;
  signal: AbortSignal;
}

export class DeletionGuard {
  readonly #options: DeletionGuardOptions;

  constructor(options: DeletionGuardOptions) {
    this.#options = options;
  }

  /**
   * Checks that requests may be sent to revoke this intent. Sends nothing.
   *
   * @throws {ReportOnlyError}, and as `DeletionProof.check`.
   */
  checkRecord(intent: Intent): void {
    if (intent.reportOnly !== undefined) throw new ReportOnlyError(intent.reportOnly, 'restored');
    this.#options.proof.check(intent, intent.record.handle);
  }

  /** What the claim wants, read live. @throws {ApiError} and {TransportError} when that is not known. */
  async wish(record: WishedVolume, signal: AbortSignal): Promise<ClaimWish> {
    const { client, provisioner, isKnownProvisioner } = this.#options;
    const { namespace, name } = record.claim;
    const claim = await liveClaim(client, record.claim, signal);
    if (claim !== undefined && !isClaim(claim, name)) {
      throw new Error(`the API server's response is not the claim ${namespace}/${name}`);
    }
    const qualifies: ClaimWishOptions['qualifies'] = (it) => provisioner.shouldProvision?.(it, { signal }) ?? true;
    return claimWish(record, claim, { isKnownProvisioner, qualifies });
  }

  /**
   * To be awaited directly before each deletion; when it resolves the storage may be deleted at once, with nothing awaited before.
   *
   * The order counts: the claim is gone before the volumes are read, so that nobody creates one for it afterwards; they
   * are read before the record is written, whose write shows whether another process has adopted it; and after that
   * nothing is awaited any more.
   *
   * @throws {ReportOnlyError}, {TooEarlyError}, {WantedAgainError}, {VolumeExistsError}, as `DeletionProof`, and whatever a
   * request throws: then nothing may be deleted.
   */
  async beforeDelete(intent: Intent, handle: string, context: DeletionContext): Promise<void> {
    const { intents, clock, proof } = this.#options;
    const { signal } = context;
    if (handle === '')
      throw new ReportOnlyError('the storage has no handle by which it could be deleted', 'undecidable');
    if (intents.isOpen(intent)) intents.on(intent, { type: 'named', handle });
    else {
      await intents.reopen(intent, { handle }, signal);
      if (intents.isOpen(intent) && !context.wantedByClaim) intents.on(intent, { type: 'unwanted' });
    }
    intents.checkOpen(intent);
    if (intent.reportOnly !== undefined) throw new ReportOnlyError(intent.reportOnly, 'restored');
    if (deletableAtMs(intent.state, context.isClaimThere) > clock.monotonicMs()) {
      throw new TooEarlyError('a request that was sent before may still be carried out; the storage is deleted later');
    }
    // storage that this process has just created, and of which nobody else can know
    const isNew = context.wantedByClaim && isOwnNew(intent);
    if (!isNew) proof.check(intent);
    // a deletion that was sent must be completed: a claim that wants the volume gets another one
    const wish =
      context.wantedByClaim || isBeingDeleted(intent.state) ? 'gone' : await this.wish(intent.record, signal);
    if (wish === 'wanted' || wish === 'has-it') throw new WantedAgainError('the claim wants the volume after all');
    await (isNew ? proof.checkNew(intent, handle, signal) : proof.checkLive(intent, handle, signal));
    // after that read: storage that a PersistentVolume has now belongs to it, and nothing about it is left to decide
    if (!isNew) proof.check(intent, handle);
    await intents.toDelete(intent, handle, signal);
    signal.throwIfAborted();
    if (!isNew) proof.check(intent, handle);
    intents.on(intent, { type: 'delete-sent' });
  }

  /** Whether nothing has become known since `beforeDelete` that forbids the deletion. Sends nothing. */
  holdsStill(intent: Intent, handle: string): boolean {
    const { intents, proof } = this.#options;
    try {
      intents.checkOwned(intent);
      proof.check(intent, handle);
      return true;
    } catch {
      return false;
    }
  }
}

/** Whether nobody has used the storage that the intent's last call has returned. A name that is not unique may be that of older storage. */
function isOwnNew({ state, since, record }: Intent): boolean {
  const { volume, claim } = record;
  return !mayBeSaved(state) && !Number.isNaN(since) && isNameUnique(volume.name, claim.uid);
}

function isClaim({ metadata }: Partial<PersistentVolumeClaim>, name: string): boolean {
  return metadata?.name === name && (metadata.uid ?? '') !== '';
}
