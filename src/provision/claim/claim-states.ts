/** What the controller keeps of each claim from one sync to the next. */
import type { PersistentVolumeClaim } from '../objects.ts';

/** Of one claim; dropped as a whole once the claim needs no more work. */
export interface ClaimState {
  /** A sync is under way. */
  isSyncing: boolean;
  /** The last sync has found that something else has to end first. */
  isWaiting: boolean;
  /** The class that the last event named as missing; empty: the claim names none. */
  missingClass: string | undefined;
  /** The last attempt was infeasible: no other one before this monotonic time, unless the class has another UID by then. */
  heldBack: { readonly untilMs: number; readonly classUid: string } | undefined;
  /** The resource version of our write that removed the selected node, until the cache shows it. */
  rescheduledVersion: string | undefined;
  /**
   * The claim as it was at the last attempt, while a provisioner that is not `Recoverable` may be creating its volume: attempts go on even if
   * it is deleted meanwhile, so that the volume gets an object and is reclaimed.
   */
  kept: PersistentVolumeClaim | undefined;
}

export class ClaimStates {
  readonly #states = new Map<string, ClaimState>();

  /** @param uid - of a claim. @returns its state, which is new and empty where nothing was kept. */
  of(uid: string): ClaimState {
    const known = this.#states.get(uid);
    if (known !== undefined) return known;
    const state: ClaimState = {
      isSyncing: false,
      isWaiting: false,
      missingClass: undefined,
      heldBack: undefined,
      rescheduledVersion: undefined,
      kept: undefined,
    };
    this.#states.set(uid, state);
    return state;
  }

  /** Undefined: nothing is kept of the claim. */
  get(uid: string): ClaimState | undefined {
    return this.#states.get(uid);
  }

  all(): IterableIterator<ClaimState> {
    return this.#states.values();
  }

  /** Safe to repeat. */
  drop(uid: string): void {
    this.#states.delete(uid);
  }
}
