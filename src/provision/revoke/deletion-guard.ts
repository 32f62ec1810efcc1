/**
 * The last checks before storage that was created for a claim is deleted. Apart from the reclaim policy of a PersistentVolume, nothing is
 * deleted that may ever have had one: that it had none must be proved.
 */
import type { Clock } from '../../base/clock.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { orderOf } from '../../kube/kube-object.ts';
import { NotReachedError, type VolumeLogReader } from '../cache/volume-log-reader.ts';
import type { SeenVolume, VolumeLog } from '../cache/volume-log.ts';
import { type ClaimWish, claimWish, type ClaimWishOptions, liveClaim, type WishedVolume } from '../claim-fields.ts';
import type { StuckReason } from '../intent-journal/intent-journal.ts';
import { deletableAtMs, isBeingDeleted, mayBeSaved } from '../intents/intent-state.ts';
import { type Intent, isNeverSaved } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from '../objects.ts';
import { hasStorage, type Recoverable } from '../recoverable.ts';
import type { StorageHolders, StorageIndex } from '../volume/storage-holders.ts';
import { storedVolume } from '../volume/stored-volume.ts';

/**
 * Why storage must not be deleted.
 *
 * - `wanted`: the claim wants the volume after all.
 * - `too-early`: an earlier request may still be under way.
 * - `pending`: the history of PersistentVolumes is still being read.
 * - `seen`: the volume has had a PersistentVolume.
 * - `unproved`: that it has had none cannot be proved, now or later.
 * - `has-name`, `has-storage`: a PersistentVolume has the name, or the storage.
 * - `stuck`: nothing may be deleted because of the record.
 */
export type Refusal =
  | { readonly kind: PlainRefusal }
  | { readonly kind: 'seen'; readonly volume: SeenVolume }
  | { readonly kind: 'stuck'; readonly reason: StuckReason };

type PlainRefusal = 'wanted' | 'too-early' | 'pending' | 'unproved' | 'has-name' | 'has-storage';

/** Nothing may be deleted now. */
export class DeletionRefusedError extends Error {
  override readonly name = 'DeletionRefusedError';
  readonly refusal: Refusal;

  constructor(refusal: Refusal | PlainRefusal, message: string) {
    super(message);
    this.refusal = typeof refusal === 'string' ? { kind: refusal } : refusal;
  }
}

export interface DeletionGuardOptions {
  intents: Intents;
  log: VolumeLog;
  reader: Pick<VolumeLogReader, 'reach'>;
  volumes: Lister<PersistentVolume> & { readonly version: string | undefined };
  provisioner: Recoverable;
  isKnownProvisioner: (name: string) => boolean;
  /** Undefined, where the caches were created without one: then all volumes are listed. */
  index: Pick<StorageIndex, 'find'> | undefined;
  holders: Pick<StorageHolders, 'find'>;
  client: KubeClient;
  clock: Clock;
}

interface DeletionContext {
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

  /** Checks that requests may be sent to revoke this intent. Sends nothing. @throws as `check`. */
  checkRecord(intent: Intent): void {
    checkReportOnly(intent);
    this.check(intent, intent.record.handle);
  }

  /**
   * Checks that it is proved up to what was read last. Sends nothing. What was lost of the history does not matter where nobody can have
   * created the PersistentVolume; one that was seen does.
   *
   * @param handle - of the storage, where it is known.
   * @throws {DeletionRefusedError} when it is not.
   */
  check(intent: Intent, handle?: string): void {
    const { record, since, firstSince } = intent;
    const { log, volumes, provisioner } = this.#options;
    const { name } = record.volume;
    if (!isNameUnique(name, record.claim.uid)) {
      throw unproved('its name does not contain the whole UID of the claim: an older volume may have had it');
    }
    const verdict = log.verdict(name, since);
    if (verdict.kind === 'seen') {
      const message = `PersistentVolume ${JSON.stringify(name)} has existed since the volume was begun`;
      throw new DeletionRefusedError(verdict, message);
    }
    if (verdict.kind === 'unknown' && !isNeverSaved(intent)) throw unproved(verdict.why);
    if (verdict.kind === 'pending') {
      const message = 'which PersistentVolumes there were while no process followed them is still being read';
      throw new DeletionRefusedError('pending', message);
    }
    if (handle === undefined) return;
    // also what the cache does not show yet
    const imported = log.sawStorage(provisioner.handleKey(handle), Math.min(firstSince, orderOf(volumes.version)));
    if (imported) throw unproved('a PersistentVolume of another name has had its storage');
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
   * @throws {DeletionRefusedError}, and whatever a request throws: then nothing may be deleted.
   */
  async beforeDelete(intent: Intent, handle: string, context: DeletionContext): Promise<void> {
    const { intents, clock } = this.#options;
    const { signal } = context;
    if (handle === '') throw stuck('undecidable', 'the storage has no handle by which it could be deleted');
    if (intents.isOpen(intent)) intents.on(intent, { type: 'named', handle });
    else {
      await intents.reopen(intent, { handle }, signal);
      if (intents.isOpen(intent) && !context.wantedByClaim) intents.on(intent, { type: 'unwanted' });
    }
    intents.checkOpen(intent);
    checkReportOnly(intent);
    if (deletableAtMs(intent.state, context.isClaimThere) > clock.monotonicMs()) {
      const message = 'a request that was sent before may still be carried out; the storage is deleted later';
      throw new DeletionRefusedError('too-early', message);
    }
    // storage that this process has just created, and of which nobody else can know
    const isNew = context.wantedByClaim && isOwnNew(intent);
    if (!isNew) this.check(intent);
    // a deletion that was sent must be completed: a claim that wants the volume gets another one
    const wish =
      context.wantedByClaim || isBeingDeleted(intent.state) ? 'gone' : await this.wish(intent.record, signal);
    if (wish === 'wanted' || wish === 'has-it')
      throw new DeletionRefusedError('wanted', 'the claim wants the volume after all');
    await (isNew ? this.#checkNew(intent, handle, signal) : this.#checkLive(intent, handle, signal));
    // after that read: storage that a PersistentVolume has now belongs to it, and nothing about it is left to decide
    if (!isNew) this.check(intent, handle);
    await intents.toDelete(intent, handle, signal);
    signal.throwIfAborted();
    if (!isNew) this.check(intent, handle);
    intents.on(intent, { type: 'delete-sent' });
  }

  /** Whether nothing has become known since `beforeDelete` that forbids the deletion. Sends nothing. */
  holdsStill(intent: Intent, handle: string): boolean {
    try {
      this.#options.intents.checkOwned(intent);
      this.check(intent, handle);
      return true;
    } catch {
      return false;
    }
  }

  /** Reads live whether a volume has the name or the storage, and what happened until now: then `check` covers everything up to this call. */
  async #checkLive({ record, since }: Intent, handle: string, signal: AbortSignal): Promise<void> {
    const { client, log, reader, intents } = this.#options;
    const { name } = record.volume;
    const before = log.reached;
    // without a limit, so that the API server brings its cache up to date, which is what watches are served from
    const { items, resourceVersion } = await client.listWithVersion<PersistentVolume>(persistentVolumes, {
      fieldSelector: `metadata.name=${name}`,
      signal,
    });
    const now = orderOf(resourceVersion);
    if (now < before || now < since) intents.upkeep.lostHistory(); // the API server has gone back to an older state
    this.#checkHolder(
      items.find(({ metadata }) => metadata.name === name),
      handle,
    );
    try {
      await reader.reach(now, signal);
    } catch (error) {
      if (error instanceof NotReachedError) throw new DeletionRefusedError('pending', error.message);
      throw error;
    }
    await this.#checkStorage(name, handle, signal);
  }

  /** Reads live whether a volume has the name, and in the cache whether one has the storage: that is enough for storage that is new. */
  async #checkNew({ record }: Intent, handle: string, signal: AbortSignal): Promise<void> {
    const { name } = record.volume;
    this.#checkHolder(await storedVolume(this.#options.client, name, signal), handle);
    await this.#checkStorage(name, handle, signal);
  }

  async #checkStorage(name: string, handle: string, signal: AbortSignal): Promise<void> {
    const { provisioner, index, holders } = this.#options;
    const found = index?.find([provisioner.handleKey(handle)], signal) ?? holders.find({ name, handle }, signal);
    this.#checkHolder(await found, handle);
  }

  #checkHolder(holder: PersistentVolume | undefined, handle: string): void {
    if (holder === undefined) return;
    const hasIt = hasStorage(this.#options.provisioner, holder, handle);
    const what = hasIt ? 'storage' : 'name';
    const message = `PersistentVolume ${JSON.stringify(holder.metadata.name)} exists and has the ${what}`;
    throw new DeletionRefusedError(`has-${what}`, message);
  }
}

function unproved(message: string): DeletionRefusedError {
  return new DeletionRefusedError('unproved', message);
}

function stuck(reason: StuckReason, message: string): DeletionRefusedError {
  return new DeletionRefusedError({ kind: 'stuck', reason }, message);
}

function checkReportOnly({ reportOnly }: Intent): void {
  if (reportOnly !== undefined) throw stuck('restored', reportOnly);
}

/** Whether a name contains the whole UID: one with only a part of it may have been that of another claim's volume. */
export function isNameUnique(name: string, uid: string): boolean {
  return name.includes(uid) || name.includes(uid.replaceAll('-', ''));
}

/** Whether nobody has used the storage that the intent's last call has returned. A name that is not unique may be that of older storage. */
function isOwnNew({ state, since, record }: Intent): boolean {
  const { volume, claim } = record;
  return !mayBeSaved(state) && !Number.isNaN(since) && isNameUnique(volume.name, claim.uid);
}

function isClaim({ metadata }: Partial<PersistentVolumeClaim>, name: string): boolean {
  return metadata?.name === name && (metadata.uid ?? '') !== '';
}
