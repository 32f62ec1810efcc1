import { SecretString } from '../../base/secret-string.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../../kube/kube-object.ts';
import type { SecretReference } from '../../provision/objects.ts';
import { errorMessage } from '../error-message.ts';

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
