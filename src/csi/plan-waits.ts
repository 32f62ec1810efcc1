/** Which claims wait for objects that only the planning of their volumes reads, so that a change of one of these has them retried. */
import type { Clock, Timer } from '../base/clock.ts';
import { type Informer, Tombstone } from '../kube/cache/informer.ts';
import { type KubeObject, objectKey } from '../kube/kube-object.ts';
import { ClaimWaits } from '../provision/waits.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';

/** The source of a clone, by `namespace/name`, all ReferenceGrants, or all Nodes and CSINodes. */
export type PlanWait = `claim/${string}` | 'grants' | 'nodes';

type Changes<T extends KubeObject> = Pick<Informer<T>, 'addHandler'>;

/** How long changes of nodes and grants are gathered, as many of them often change together; in milliseconds. */
const gatheringMs = 1000;

/**
 * Has a claim retried, after a step of its plan has failed, once what the step has read changes. What is not watched, such as Secrets,
 * snapshots and attributes classes, is read again after the usual pause.
 */
export class PlanWaits implements Disposable {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #waits: ClaimWaits<PlanWait>;
  readonly #listeners = new Set<(uid: string) => void>();
  readonly #gathering = new Map<PlanWait, Timer>();

  constructor(options: { clock: Pick<Clock, 'after'> }) {
    this.#clock = options.clock;
    this.#waits = new ClaimWaits((uid) => {
      for (const listener of this.#listeners) listener(uid);
    });
  }

  /** Calls the listener with the UID of each claim that may succeed by now. */
  onClaimChanged(listener: (uid: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Runs a step that reads what `wait` names. If it fails, the claim waits for a change of that. */
  async during<T>(claimUid: string, wait: PlanWait, step: () => T | Promise<T>): Promise<T> {
    this.#waits.add(claimUid, wait); // before anything is read
    const result = await step();
    this.#waits.delete(claimUid, wait);
    return result;
  }

  /** The claim is planned again, has its volume or is gone. Safe to repeat. */
  forget(claimUid: string): void {
    this.#waits.delete(claimUid);
  }

  /** Follows claims as sources of clones: when one appears, is bound, is resized or goes. */
  followClaims(claims: Changes<PersistentVolumeClaim>): void {
    const changed = (claim: PersistentVolumeClaim): void => {
      if (this.#waits.size > 0) this.#waits.changed(`claim/${objectKey(claim)}`);
    };
    claims.addHandler({
      onAdd: changed,
      onUpdate: (old, claim) => {
        if (old !== claim && !sameSource(old, claim)) changed(claim);
      },
      onDelete: (gone) => changed(gone instanceof Tombstone ? gone.object : gone),
    });
  }

  /** Follows objects of which each change may let waiting claims succeed. */
  follow<T extends KubeObject>(objects: Changes<T>, wait: 'grants' | 'nodes'): void {
    const changed = (): void => {
      if (this.#waits.size === 0 || this.#gathering.has(wait)) return;
      const end = (): void => {
        this.#gathering.delete(wait);
        this.#waits.changed(wait);
      };
      this.#gathering.set(wait, this.#clock.after(gatheringMs, end));
    };
    objects.addHandler({
      onAdd: changed,
      onUpdate: (old, object) => {
        if (old !== object) changed();
      },
      onDelete: changed,
    });
  }

  /** Drops the changes that are still being gathered. */
  [Symbol.dispose](): void {
    for (const timer of this.#gathering.values()) timer.cancel();
    this.#gathering.clear();
  }
}

/** Whether both are the same as a source of a clone. The rest of a claim may be edited many times a second. */
function sameSource(old: PersistentVolumeClaim, claim: PersistentVolumeClaim): boolean {
  return (
    old.metadata.uid === claim.metadata.uid &&
    old.metadata.deletionTimestamp === claim.metadata.deletionTimestamp &&
    old.status?.phase === claim.status?.phase &&
    old.spec.volumeName === claim.spec.volumeName &&
    old.spec.resources?.requests?.['storage'] === claim.spec.resources?.requests?.['storage']
  );
}
