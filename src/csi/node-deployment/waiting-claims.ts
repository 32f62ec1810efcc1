/** Records why a claim stays Pending although nothing failed: each node leaves it to another. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import { claimReference, claimUid, namesVolume, selectedNode } from '../../provision/claim-fields.ts';
import { uidIndex } from '../../provision/cache/informers.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { waitingReason } from '../../provision/event-reasons.ts';

export interface WaitingClaimsOptions {
  /** With the index by UID. */
  claims: Lister<PersistentVolumeClaim>;
  recorder: Recorder;
  clock: Clock;
}

interface Note {
  message: string;
  timer: Timer;
}

/**
 * Claims that this node leaves to others. One that nobody has taken after a while gets the event `ProvisioningWaiting`,
 * once for each cause, however many nodes say the same.
 */
export class WaitingClaims {
  readonly #options: WaitingClaimsOptions;
  readonly #notes = new Map<string, Note>();

  constructor(options: WaitingClaimsOptions) {
    this.#options = options;
  }

  /**
   * The claim is left to others. A repeat with the same message changes nothing, one with another starts again.
   *
   * @param message - what it waits for; the same on every node.
   * @param patienceMs - how long another node may take before the event is recorded, in milliseconds.
   */
  note(claim: PersistentVolumeClaim, message: string, patienceMs: number): void {
    const uid = claimUid(claim);
    const known = this.#notes.get(uid);
    if (known?.message === message) return;
    known?.timer.cancel();
    const node = selectedNode(claim);
    const timer = this.#options.clock.after(patienceMs, () => this.#record(uid, node, message));
    this.#notes.set(uid, { message, timer });
  }

  /** The claim is taken, bound or gone. Safe to repeat. */
  forget(uid: string): void {
    this.#notes.get(uid)?.timer.cancel();
    this.#notes.delete(uid);
  }

  /** Records nothing more. */
  stop(): void {
    for (const { timer } of this.#notes.values()) timer.cancel();
    this.#notes.clear();
  }

  #record(uid: string, node: string, message: string): void {
    const { claims, recorder } = this.#options;
    const claim = claims.byIndex(uidIndex, uid)[0];
    if (claim === undefined || namesVolume(claim) || selectedNode(claim) !== node) return;
    recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
  }
}
