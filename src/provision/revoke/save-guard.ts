/** Checks before the PersistentVolume of an open intent is created, and updates the intent with what becomes of it. */
import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../../base/permit.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import type { ClaimWish } from '../claim-fields.ts';
import { VolumeAbandonedError } from '../intents/intent-index.ts';
import { mayBeSaved } from '../intents/intent-state.ts';
import type { Intent } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume } from '../objects.ts';
import type { RecentlySaved, SaveAttempt, SaveHooks, UnsavedVolume } from '../volume/save-volume.ts';
import { storedVolume } from '../volume/stored-volume.ts';
import type { DeletionGuard } from './deletion-guard.ts';
import type { RevokeQueue } from './revoke-queue.ts';

/** For how long a live read is valid, in milliseconds: the request may wait for its turn or a connection, or the process may be paused. */
const maxAgeMs = 10_000;

interface SaveGuardOptions {
  intents: Intents;
  guard: DeletionGuard;
  revokeQueue: Pick<RevokeQueue, 'closeNowOrAfterLateCalls'>;
  claimQueue: Pick<WorkQueue, 'addRateLimited'>;
  /** UIDs of claims whose volume was saved, which the cache of claims may not show yet. */
  recentlyServedClaims: Pick<RecentlySaved, 'add'>;
  client: KubeClient;
  clock: Clock;
}

export class SaveGuard implements SaveHooks {
  readonly #options: SaveGuardOptions;

  constructor(options: SaveGuardOptions) {
    this.#options = options;
  }

  /**
   * If an earlier request of any process may have created the object, the claim is read live: an administrator may have removed both
   * since then to keep the storage, which a second object would have reclaimed. Without a record only the object is looked for.
   *
   * @throws {VolumeAbandonedError} when it does not exist and its claim no longer wants it, and as `DeletionGuard.wish`.
   */
  async findEarlierSave(
    volume: PersistentVolume,
    signal: AbortSignal,
  ): Promise<{ found: PersistentVolume } | UnsavedVolume> {
    const intent = this.#intentOf(volume);
    if (intent === undefined) return this.#findSaved(volume, 'its record was closed meanwhile', signal);
    if (!mayBeSaved(intent.state)) return { intent, permit: undefined };
    const { clock, guard } = this.#options;
    const beganAt = momentOf(clock);
    const wish = await guard.wish(intent.record, signal);
    if (wish === 'has-it') return this.#findSaved(volume, 'its claim was bound to it, and it was removed', signal);
    checkWanted(wish, volume);
    const read = async (): Promise<void> => checkWanted(await guard.wish(intent.record, signal), volume);
    return { intent, permit: new LiveReadPermit({ clock, beganAt, read }) };
  }

  /** The API server may carry the request out even if no response arrives. */
  beginSave({ intent, permit }: UnsavedVolume): SaveAttempt {
    const { intents } = this.#options;
    intents.on(intent, { type: 'save-sent' });
    return {
      permit,
      recheck: () => intents.checkOwned(intent),
      ended: (isClear) => void intents.on(intent, { type: 'save-ended', isClear }),
    };
  }

  /** The claim has its volume: it counts as served, and its record is closed, now or after late calls. */
  saved(volume: PersistentVolume): void {
    this.#options.recentlyServedClaims.add(claimUidOf(volume));
    const intent = this.#intentOf(volume);
    if (intent !== undefined) this.#options.revokeQueue.closeNowOrAfterLateCalls(intent);
  }

  /** The store has given the volume up: the claim is synced again. */
  dropped(volume: PersistentVolume): void {
    this.#options.claimQueue.addRateLimited(claimUidOf(volume));
  }

  /** The name of the volume is taken by other storage, or for another claim. */
  taken(volume: PersistentVolume): void {
    const intent = this.#intentOf(volume);
    if (intent !== undefined) this.#options.intents.setNameTaken(intent, true);
  }

  /** Finds a volume that only an earlier request can have saved. */
  async #findSaved(
    { metadata: { name } }: PersistentVolume,
    why: string,
    signal: AbortSignal,
  ): Promise<{ found: PersistentVolume }> {
    const found = await storedVolume(this.#options.client, name, signal);
    if (found === undefined) throw new VolumeAbandonedError(name, why);
    return { found };
  }

  #intentOf(volume: PersistentVolume): Intent | undefined {
    const intent = this.#options.intents.get(claimUidOf(volume));
    return intent?.record.volume.name === volume.metadata.name ? intent : undefined;
  }
}

function claimUidOf({ spec }: PersistentVolume): string {
  return spec.claimRef?.uid ?? '';
}

function checkWanted(wish: ClaimWish, { metadata: { name } }: PersistentVolume): void {
  if (wish === 'wanted') return;
  const why = wish === 'gone' ? 'the claim was deleted meanwhile' : 'the claim has its volume, or another one';
  throw new VolumeAbandonedError(name, why);
}

/** A live read before a request, which must be recent when the request is sent. */
export class LiveReadPermit implements Permit {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  readonly #read: () => Promise<void>;
  #beganAt: Moment | undefined;

  /** @param options.beganAt - when a read that has succeeded already began. Default: there was none yet. */
  constructor(options: {
    clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
    read: () => Promise<void>;
    beganAt?: Moment | undefined;
  }) {
    this.#clock = options.clock;
    this.#read = options.read;
    this.#beganAt = options.beganAt;
  }

  get isValid(): boolean {
    return this.#beganAt !== undefined && passedMs(this.#beganAt, momentOf(this.#clock)) <= maxAgeMs;
  }

  /** Reads again. @throws what the read throws. */
  async renewed(): Promise<void> {
    const beganAt = momentOf(this.#clock);
    await this.#read();
    this.#beganAt = beganAt;
  }
}
