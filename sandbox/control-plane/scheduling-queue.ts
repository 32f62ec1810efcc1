import type { Clock, Timer } from '../../src/base/clock.ts';
import type { KeyedWorker } from './keyed-worker.ts';
import type { PodBinding } from './pod-binding.ts';

/** What a `SchedulingQueue` needs. */
export interface SchedulingQueueOptions {
  worker: KeyedWorker;
  clock: Clock;
  /** Delay before the second attempt of a pod in milliseconds, doubled with each further one. */
  backoffBaseMs: number;
  /** Max delay between attempts in milliseconds. */
  backoffMaxMs: number;
}

/** What the scheduler remembers of a pod until it is assigned. */
export interface PodState {
  attempts: number;
  /** Monotonic milliseconds of the last attempt. */
  lastAttemptMs: number;
  readonly usesClaims: boolean;
  /** The node is chosen and the claims are on their way. */
  binding?: PodBinding;
  lastNode?: string;
}

/** An unschedulable pod is tried again after this long even if nothing changed. */
const parkedMaxMs = 300_000;
const unparkEveryMs = 30_000;

/**
 * Pods on their way to a node. One that fits nowhere is parked until something changes that could help, and no pod is
 * tried again before its back-off is over.
 */
export class SchedulingQueue implements Disposable {
  readonly #options: SchedulingQueueOptions;
  readonly #states = new Map<string, PodState>();
  readonly #parked = new Set<string>();
  #unparkTimer: Timer | undefined;

  constructor(options: SchedulingQueueOptions) {
    this.#options = options;
    this.#planUnparking();
  }

  [Symbol.dispose](): void {
    this.#unparkTimer?.cancel();
  }

  state(key: string): PodState | undefined {
    return this.#states.get(key);
  }

  /** Counts a new attempt and returns the pod's state. */
  startAttempt(key: string, usesClaims: boolean): PodState {
    const state = this.#states.get(key) ?? { attempts: 0, lastAttemptMs: 0, usesClaims };
    this.#states.set(key, state);
    this.#parked.delete(key);
    state.attempts++;
    state.lastAttemptMs = this.#options.clock.monotonicMs();
    return state;
  }

  /** Sets the pod aside until it is woken. */
  park(key: string): void {
    this.#parked.add(key);
  }

  /** Plans the next attempt for the end of the back-off. */
  retry(key: string, { attempts, lastAttemptMs }: PodState): void {
    const { worker, clock, backoffBaseMs, backoffMaxMs } = this.#options;
    const backoffMs = Math.min(backoffBaseMs * 2 ** (attempts - 1), backoffMaxMs);
    worker.addAfter(key, Math.max(0, lastAttemptMs + backoffMs - clock.monotonicMs()));
  }

  /** Plans the next attempt if the pod is parked. */
  wake(key: string): void {
    const state = this.#states.get(key);
    if (state !== undefined && this.#parked.delete(key)) this.retry(key, state);
  }

  /** Wakes the parked pods that `affected` picks, by default all. */
  wakeParked(affected: (state: PodState) => boolean = () => true): void {
    for (const key of this.#parked) {
      const state = this.#states.get(key);
      if (state !== undefined && affected(state)) this.wake(key);
    }
  }

  /** The pod is assigned or gone. */
  forget(key: string): void {
    this.#states.delete(key);
    this.#parked.delete(key);
    this.#options.worker.drop(key);
  }

  #planUnparking(): void {
    const { clock } = this.#options;
    this.#unparkTimer = clock.after(unparkEveryMs, () => {
      const parkedBeforeMs = clock.monotonicMs() - parkedMaxMs;
      this.wakeParked(({ lastAttemptMs }) => lastAttemptMs <= parkedBeforeMs);
      this.#planUnparking();
    });
  }
}
