/** Attempts to make volumes, as the controller makes them of a `Recoverable` provisioner. */
import type { PersistentVolume } from '../../src/provision/objects.ts';
import { ProvisionError, type ProvisionContext, type ProvisionOptions } from '../../src/provision/provisioner.ts';
import { type Plan, Planned, type Recoverable } from '../../src/provision/recoverable.ts';

/**
 * One attempt after the other for each claim: a plan that may have been fulfilled is fulfilled again, else there is a
 * new one. The records of the plans, their saved volumes and the revoker, which deletes a volume that does not fit and could not
 * be deleted at once, are left out.
 */
export class Attempts {
  readonly #provisioner: Pick<Recoverable, 'plan' | 'fulfil'>;
  /** By UID of the claim: what was planned, whose storage may exist. */
  readonly #open = new Map<string, Plan | Planned>();

  constructor(provisioner: Pick<Recoverable, 'plan' | 'fulfil'>) {
    this.#provisioner = provisioner;
  }

  /** @throws what `plan` or `fulfil` throws. */
  async make(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    const { uid = '' } = options.claim.metadata;
    const open = this.#open.get(uid);
    const mayExist = open !== undefined;
    const made = open ?? (await this.#provisioner.plan(options, context));
    const [plan, planned] = made instanceof Planned ? [made.plan, made] : [made, undefined];
    const beforeDelete = (): Promise<void> => Promise.resolve();
    try {
      const volume = await this.#provisioner.fulfil(plan, { ...context, planned, mayExist, beforeDelete });
      this.#open.delete(uid);
      return volume;
    } catch (error) {
      if (leavesOpen(error, mayExist)) this.#open.set(uid, made);
      else this.#open.delete(uid);
      throw error;
    }
  }
}

/** Whether there may be storage of a plan after the failed attempt. */
function leavesOpen(error: unknown, mayExist: boolean): boolean {
  if (!(error instanceof ProvisionError)) return true;
  const { state, afterUnclear } = error;
  if (state === 'no-change') return mayExist;
  if (afterUnclear === 'absent') return false;
  return state === 'in-background' || mayExist; // a later final code may only mean that the driver has lost track
}
