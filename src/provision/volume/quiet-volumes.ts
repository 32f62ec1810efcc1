/** Keeps the storage of a released volume while a call that would recreate it may be under way. */
import type { Clock } from '../../base/clock.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume } from '../objects.ts';
import { deletedAfterText, deletedOnceText, deletionWaitingReason } from '../event-reasons.ts';
import { volumeReference } from '../volume-fields.ts';

export interface QuietVolumesOptions {
  intents: Pick<Intents, 'quietInMs'>;
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
    const waitMs = intents.quietInMs(name);
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
