/** Calls that may still create storage although nobody waits for them: those that were given up, and those of other processes. */
import type { Clock } from '../../base/clock.ts';
import type { BackendProgress } from '../backend-progress.ts';
import { holdMs, lateUntil, maxHoldMs } from './call-times.ts';
import type { Intent } from './intent.ts';

/**
 * How long a process whose record was adopted by another may go on before its watch shows that the claim is served or gone, in
 * milliseconds.
 */
const noticeMs = 10_000;

/** A backend that takes longer to read what it was sent has stalled, in milliseconds; a quarter of the time of a call, if that is less. */
const promptMs = 1000;

export interface LateCallsOptions {
  /** How long a call to the backend may take, in milliseconds. */
  maxCallMs: number;
  /** What the backend has read. Undefined: everything counts as read. */
  progress: BackendProgress | undefined;
  clock: Clock;
}

/** Sets until when such calls are expected for an intent. */
export class LateCalls {
  readonly #options: LateCallsOptions;
  /** Intents with calls that were given up, which the backend may not have read. */
  readonly #unread = new Set<Intent>();
  /** By the name of a volume whose record was closed: when calls that may create its storage have ended, in monotonic milliseconds. */
  readonly #ofClosed = new Map<string, number>();

  constructor(options: LateCallsOptions) {
    this.#options = options;
    options.progress?.onProgress((untilMs) => this.#read(untilMs));
  }

  /** How long a call to the backend may take, in milliseconds. */
  get maxCallMs(): number {
    return this.#options.maxCallMs;
  }

  /** An intent is new: a call of an earlier attempt for the same name, whose record is closed, may still run at the backend. */
  begun(intent: Intent): void {
    const untilMs = this.#ofClosed.get(intent.record.volume.name);
    if (untilMs === undefined) return;
    intent.lateUntilMs = Math.max(intent.lateUntilMs, untilMs);
    intent.keptUntilMs = Math.max(intent.keptUntilMs, Math.min(untilMs, this.#nowMs + holdMs(this.maxCallMs)));
  }

  /** Its record was taken over from a process that may be alive: it may be in a call, or begin one before it notices. */
  takenOver(intent: Intent): void {
    intent.owner = 'taken-over';
    this.#expectCallOfOther(intent);
  }

  /**
   * The claim is served or gone: the former owner of the record will notice, and may begin a last call until then. Does nothing for a
   * record that was not taken over.
   */
  keepForOthers(intent: Intent): void {
    if (intent.owner !== 'taken-over') return;
    const endMs = this.#nowMs + holdMs(noticeMs + this.maxCallMs);
    intent.deleteNotBeforeMs = Math.max(intent.deleteNotBeforeMs, endMs);
    intent.keptUntilMs = Math.max(intent.keptUntilMs, endMs);
    this.#expectCallOfOther(intent);
  }

  /** The other process may begin a last call before it notices. */
  #expectCallOfOther(intent: Intent): void {
    intent.lateUntilMs = Math.max(intent.lateUntilMs, lateUntil(this.#nowMs + noticeMs, this.maxCallMs));
  }

  /**
   * A call that creates the storage has ended without a clear result. If the volume is saved by a later call and then released, its
   * storage is kept until the first one can no longer run at the backend, but for no longer than after a take-over.
   */
  unclear(intent: Intent): void {
    const nowMs = this.#nowMs;
    intent.exhausted = false;
    intent.unclearAtMs = nowMs;
    intent.lateUntilMs = Math.max(intent.lateUntilMs, lateUntil(nowMs, this.maxCallMs));
    intent.keptUntilMs = Math.max(intent.keptUntilMs, nowMs + holdMs(this.maxCallMs));
    if (this.#options.progress?.isBehind !== true) return;
    intent.unread = { firstMs: intent.unread?.firstMs ?? nowMs, lastMs: nowMs };
    this.#unread.add(intent);
  }

  /** An intent replaces an earlier one for the same record: calls that were not read before have not been read since. */
  replaced(earlier: Intent, intent: Intent): void {
    if (earlier.unread === undefined) return;
    intent.unread = earlier.unread;
    this.#unread.add(intent);
  }

  /** Calls that were given up before `untilMs`, in monotonic milliseconds, have been read by now. */
  #read(untilMs: number): void {
    for (const intent of this.#unread) {
      if (intent.unread !== undefined && intent.unread.lastMs >= untilMs) continue;
      this.#unread.delete(intent);
      this.#readOf(intent);
    }
  }

  /**
   * What was given up has been read by now. If that took long, the backend has stalled, and may have begun the calls only when it resumed: then
   * they may take as long as a call that is sent now and given up.
   */
  #readOf(intent: Intent): void {
    const nowMs = this.#nowMs;
    const { firstMs = nowMs } = intent.unread ?? {};
    intent.unread = undefined;
    if (nowMs - firstMs <= Math.min(promptMs, this.maxCallMs / 4)) return;
    const endMs = lateUntil(nowMs + this.maxCallMs, this.maxCallMs);
    intent.lateUntilMs = Math.max(intent.lateUntilMs, endMs);
    intent.keptUntilMs = Math.max(intent.keptUntilMs, Math.min(endMs, nowMs + maxHoldMs));
  }

  /**
   * The last attempt to revoke it had no clear result: its call may still create the storage, and an earlier deletion would need a second
   * revoke. So the next attempt waits until that call has ended, unless this takes longer than `maxHoldMs`.
   */
  awaitOwn(intent: Intent): void {
    if (intent.lateUntilMs - this.#nowMs > maxHoldMs) return;
    intent.deleteNotBeforeMs = Math.max(intent.deleteNotBeforeMs, intent.lateUntilMs);
  }

  /** Its record is closed: what may still run is expected by the next intent for the same name. */
  closed({ record, lateUntilMs }: Intent): void {
    const nowMs = this.#nowMs;
    for (const [name, endMs] of this.#ofClosed) {
      if (endMs > nowMs) break; // those behind it end later, as a rule: thousands may close at the same time
      this.#ofClosed.delete(name);
    }
    if (lateUntilMs > nowMs) this.#ofClosed.set(record.volume.name, lateUntilMs);
  }

  /** For how long a late call may recreate the storage of a saved volume whose record is closed, in milliseconds; 0: none can. */
  msAfterClosing(volumeName: string): number {
    return Math.max(0, (this.#ofClosed.get(volumeName) ?? 0) - this.#nowMs);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
