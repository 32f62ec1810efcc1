import { SecretString } from '../../base/secret-string.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../../kube/kube-object.ts';
import type { SecretReference } from '../../provision/objects.ts';
import { errorMessage } from '../call-error.ts';

/** core/v1 Secret: the part that is read. */
export interface Secret extends KubeObject {
  /** Values in base64. */
  data?: Record<string, string> | null;
}

export const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

/**
 * Reads a Secret live, on every call: rotated credentials count at once.
 *
 * @throws {Error} `error getting secret <name> in namespace <namespace>: <API error>`.
 */
export async function readSecret(
  client: KubeClient,
  reference: SecretReference,
  options: { signal?: AbortSignal } = {},
): Promise<Record<string, SecretString>> {
  try {
    const { data } = await client.get<Secret>(secrets, reference, options);
    return Object.fromEntries(
      Object.entries(data ?? {}).map(([key, value]) => [key, SecretString.fromBytes(Buffer.from(value, 'base64'))]),
    );
  } catch (error) {
    throw new Error(
      `error getting secret ${reference.name} in namespace ${reference.namespace}: ${errorMessage(error)}`,
      { cause: error },
    );
  }
}

type Secrets = Record<string, SecretString>;

interface PlannedSecrets {
  readonly claim: { readonly uid: string };
  readonly secretReferences: { readonly provisioner?: SecretReference };
}

/**
 * Secrets of volumes in progress, in this process only: if the claim is deleted, the Secret may be deleted with it, and what the driver has
 * created could not be deleted without.
 */
export class KeptSecrets {
  readonly #byClaim = new Map<string, Secrets>();

  /** Does nothing for a plan without a Secret. */
  set({ claim, secretReferences }: PlannedSecrets, secrets: Secrets): void {
    if (secretReferences.provisioner !== undefined) this.#byClaim.set(claim.uid, secrets);
  }

  get({ claim }: Pick<PlannedSecrets, 'claim'>): Secrets | undefined {
    return this.#byClaim.get(claim.uid);
  }

  delete(claimUid: string): void {
    this.#byClaim.delete(claimUid);
  }
}
