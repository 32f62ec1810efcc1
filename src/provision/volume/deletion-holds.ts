/** What keeps the storage of a released volume: a call that would recreate it, another volume that has it, and a cache that is behind. */
import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs } from '../../base/permit.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { deletedAfterText, deletedOnceText, deletionWaitingReason, sharedStorageText } from '../event-reasons.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume } from '../objects.ts';
import type { Provisioner } from '../provisioner.ts';
import { ownerOf, shouldDelete, type VolumeOwnership, volumeReference } from '../volume-fields.ts';
import { DeletionWaits, type Waiter } from '../waits.ts';
import type { StorageHolders, StorageIndex, StorageKeys } from './storage-holders.ts';

interface QuietVolumesOptions {
  intents: Pick<Intents, 'heldInMs'>;
  /** In which a volume is synced again. */
  volumeQueue: Pick<WorkQueue, 'addAfter'>;
  recorder: Recorder;
  clock: Clock;
}

/** Waits whose end is not known are checked this often; an event is recorded only after some time. In milliseconds. */
const unknownEndMs = 1000;
const patienceMs = 10_000;

export class QuietVolumes {
  readonly #options: QuietVolumesOptions;
  /** By the name of the volume: since when it waits, in monotonic milliseconds, and whether an event says so. */
  readonly #waits = new Map<string, { sinceMs: number; isRecorded: boolean }>();

  constructor(options: QuietVolumesOptions) {
    this.#options = options;
  }

  /** To be called before storage is deleted. If that must wait, an event says until when, once, and the volume is synced again then. */
  mustWait(volume: PersistentVolume): boolean {
    const { intents, volumeQueue } = this.#options;
    const { name } = volume.metadata;
    const waitMs = intents.heldInMs(name);
    if (waitMs <= 0) {
      this.#waits.delete(name);
      return false;
    }
    this.#record(volume, waitMs);
    volumeQueue.addAfter(name, waitMs);
    return true;
  }

  /** The volume is gone, or not to be deleted any more. Safe to repeat. */
  forget(name: string): void {
    this.#waits.delete(name);
  }

  #record(volume: PersistentVolume, waitMs: number): void {
    const { recorder, clock } = this.#options;
    const { name } = volume.metadata;
    const nowMs = clock.monotonicMs();
    const wait = this.#waits.get(name) ?? { sinceMs: nowMs, isRecorded: false };
    this.#waits.set(name, wait);
    const hasEnd = waitMs > unknownEndMs;
    if (wait.isRecorded || (!hasEnd && nowMs - wait.sinceMs < patienceMs)) return;
    wait.isRecorded = true;
    const end = new Date(Math.ceil((clock.wallMs() + waitMs) / 1000) * 1000).toISOString();
    const message = hasEnd
      ? `persistentvolume ${name} ${deletedAfterText} ${end}: until then an earlier call may still be creating its storage`
      : `persistentvolume ${name} ${deletedOnceText} that may still be creating its storage`;
    recorder.event(volumeReference(volume), 'Normal', deletionWaitingReason, message, { once: true });
  }
}

interface SharedStorageOptions extends VolumeOwnership {
  provisioner: Pick<Provisioner, 'shouldDelete'>;
  storageKeys: StorageKeys;
  volumes: Pick<Informer<PersistentVolume>, 'get' | 'isFollowing'>;
  /** Undefined, where the caches were created without one: all volumes are listed for each deletion. */
  index: StorageIndex | undefined;
  holders: Pick<StorageHolders, 'sharing'>;
  recorder: Recorder;
  clock: Clock;
  addFinalizer: boolean;
  /** In which a volume is synced again. */
  volumeQueue: Pick<WorkQueue, 'add' | 'addAfter'>;
}

/** Why the storage is kept for the other volume, as its event says. */
const reasons = {
  kept: { type: 'Warning', text: 'is not to be deleted' },
  held: { type: 'Normal', text: 'cannot be deleted yet' },
  first: { type: 'Normal', text: 'is deleted first' },
} as const;

interface Keeper {
  volume: PersistentVolume;
  reason: keyof typeof reasons;
}

/** After which a volume is synced again that waits for one which the cache does not show, in milliseconds. */
const unseenMs = 10_000;

/**
 * While another volume has the same storage, of whatever claim or provisioner, nothing is deleted. Of two that are both to be
 * deleted the one with the lower UID goes first: every process decides the same.
 */
export class SharedStorage {
  readonly #options: SharedStorageOptions;
  readonly #waits = new DeletionWaits();

  constructor(options: SharedStorageOptions) {
    this.#options = options;
  }

  /**
   * To be awaited directly before storage is deleted. Where that must wait, an event says for which volume, again after half an hour; a
   * change of that volume has this one synced again.
   *
   * @throws {ApiError} and {TransportError} when it is not known: then nothing may be deleted.
   */
  async mustWait(volume: PersistentVolume, signal: AbortSignal): Promise<boolean> {
    this.#wakeEarlier(volume);
    const keys = this.#options.storageKeys(volume);
    const keeper = keys.length === 0 ? undefined : await this.#keeper(volume, keys, signal);
    if (keeper === undefined) this.#waits.delete(volume.metadata.name);
    else this.#wait(volume, keeper);
    return keeper !== undefined;
  }

  /** The volume has changed or is gone: those that wait for it are synced again. */
  changed(name: string): void {
    for (const waiter of this.#waits.waiters(name)) this.#options.volumeQueue.add(waiter.name);
  }

  /** For which volume this one waits, and why, as its event says; undefined while it does not. */
  waitText(name: string): string | undefined {
    return this.#waits.text(name);
  }

  /** The volume is gone, or not to be deleted any more. Safe to repeat. */
  forget(name: string): void {
    this.#waits.delete(name);
  }

  /** The volume is to be deleted, too, which no event of it may have shown: those that go before it need not wait any more. */
  #wakeEarlier({ metadata }: PersistentVolume): void {
    for (const { name, uid } of this.#waits.waiters(metadata.name)) {
      if (uid < (metadata.uid ?? '')) this.#options.volumeQueue.add(name);
    }
  }

  async #keeper(volume: PersistentVolume, keys: readonly string[], signal: AbortSignal): Promise<Keeper | undefined> {
    const { volumes, index, holders } = this.#options;
    if (index !== undefined && volumes.isFollowing) return this.#indexed(volume, { index, keys, signal });
    for (const other of await holders.sharing(keys, signal)) {
      const reason = other.metadata.name === volume.metadata.name ? undefined : await this.#why(volume, other, signal);
      if (reason !== undefined) return { volume: other, reason };
    }
    return undefined;
  }

  /** When it finds nothing, nothing was awaited since the index was last read. */
  async #indexed(
    volume: PersistentVolume,
    { index, keys, signal }: { index: StorageIndex; keys: readonly string[]; signal: AbortSignal },
  ): Promise<Keeper | undefined> {
    const { name } = volume.metadata;
    const before = [...this.#waits.on(name)]; // these first: a wait for another volume would be another event
    const seen = new Set([name]);
    for (;;) {
      const names = index.candidates(keys).map(({ metadata }) => metadata.name);
      const other = [...before.filter((each) => names.includes(each)), ...names].find((each) => !seen.has(each));
      if (other === undefined) return undefined;
      seen.add(other);
      this.#waits.add(waiterOf(volume), other); // before it is read, so that no later change is missed
      const found = await index.verified(other, keys, signal);
      const reason = found && (await this.#why(volume, found, signal));
      if (found !== undefined && reason !== undefined) return { volume: found, reason };
    }
  }

  /** Undefined: the storage is not kept for the other volume. */
  async #why(
    volume: PersistentVolume,
    other: PersistentVolume,
    signal: AbortSignal,
  ): Promise<Keeper['reason'] | undefined> {
    const { provisioner, addFinalizer } = this.#options;
    if (ownerOf(other, this.#options) !== 'ours' || !shouldDelete(other, addFinalizer)) return 'kept';
    if ((await provisioner.shouldDelete?.(other, { signal })) === false) return 'held';
    return (other.metadata.uid ?? '') < (volume.metadata.uid ?? '') ? 'first' : undefined;
  }

  #wait(volume: PersistentVolume, { volume: other, reason }: Keeper): void {
    const { volumes, recorder, clock, volumeQueue } = this.#options;
    const { name, uid } = volume.metadata;
    const { name: otherName, uid: otherUid } = other.metadata;
    const cause = `${otherUid ?? ''} ${reason}`;
    const { type, text: state } = reasons[reason];
    const text = `${sharedStorageText} ${otherName}, which ${state}`;
    const isDue = this.#waits.settle(waiterOf(volume), otherName, { cause, text, nowMs: clock.monotonicMs() });
    if (volumes.get(otherName)?.metadata.uid !== otherUid) volumeQueue.addAfter(name, unseenMs);
    if (!isDue) return;
    const about = { apiVersion: 'v1', kind: 'PersistentVolume', name, ...(uid !== undefined && { uid }) };
    recorder.event(about, type, deletionWaitingReason, `persistentvolume ${name} ${text}`, { once: true });
  }
}

function waiterOf({ metadata: { name, uid = '' } }: PersistentVolume): Waiter {
  return { name, uid };
}

/**
 * How far the cache may be behind before a released volume is read live, in milliseconds. lastPhaseTransitionTime has
 * whole seconds.
 */
export const maxStalenessMs = 2000;

/** By how much the API server's clock may seem to be ahead before the lateness of events can no longer be judged, in milliseconds. */
const maxAheadMs = 1000;

/**
 * How far the cache of volumes has come, by the latest lastPhaseTransitionTime seen: all volumes arrive over one watch, in
 * order. So while many are released, those that wait in the queue need no live read. Where the API server's clock is ahead, each
 * is read live.
 */
export class CacheFreshness {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  /** Changes until then are in the cache. */
  #reachedAt: Moment | undefined;
  /** Whether the API server's clock is ahead by an unknown amount, so that a late event does not look late. */
  #isAhead = false;

  constructor(clock: Pick<Clock, 'monotonicMs' | 'wallMs'>) {
    this.#clock = clock;
  }

  /** A watch event of a volume has arrived. */
  note({ status }: PersistentVolume): void {
    if (status?.lastPhaseTransitionTime === undefined) return;
    const now = momentOf(this.#clock);
    const sinceMs = now.wallMs - Date.parse(status.lastPhaseTransitionTime);
    if (sinceMs < -maxAheadMs) this.#isAhead = true;
    const ageMs = Math.max(sinceMs, 0);
    const at = { monotonicMs: now.monotonicMs - ageMs, wallMs: now.wallMs - ageMs };
    if (at.monotonicMs > (this.#reachedAt?.monotonicMs ?? -Infinity)) this.#reachedAt = at;
  }

  /** Whether the cache has caught up for this volume. Always true without lastPhaseTransitionTime (before Kubernetes 1.29). */
  isFresh({ status }: PersistentVolume): boolean {
    if (status?.lastPhaseTransitionTime === undefined) return true;
    return (
      !this.#isAhead &&
      this.#reachedAt !== undefined &&
      passedMs(this.#reachedAt, momentOf(this.#clock)) <= maxStalenessMs
    );
  }
}
