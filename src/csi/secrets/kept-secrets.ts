import type { SecretString } from '../../base/secret-string.ts';
import type { VolumePlan } from '../create/volume-plan.ts';

type Secrets = Record<string, SecretString>;

/**
 * Secrets of volumes in progress, in this process only: if the claim is deleted, the Secret may be deleted with it, and what the driver has
 * created could not be deleted without.
 */
export class KeptSecrets {
  readonly #byClaim = new Map<string, Secrets>();

  /** Does nothing for a plan without a Secret. */
  set({ claim, secretReferences }: VolumePlan, secrets: Secrets): void {
    if (secretReferences.provisioner !== undefined) this.#byClaim.set(claim.uid, secrets);
  }

  get({ claim }: VolumePlan): Secrets | undefined {
    return this.#byClaim.get(claim.uid);
  }

  delete(claimUid: string): void {
    this.#byClaim.delete(claimUid);
  }
}
