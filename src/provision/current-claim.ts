import { isUnservedResource, NotFoundError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { claimUid } from './claim-facts.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from './objects.ts';

/**
 * Reads the claim from the API server; undefined when it is gone, also when another one has its name.
 *
 * @throws what the client throws.
 */
export async function currentClaim(
  client: Pick<KubeClient, 'get'>,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const { namespace, name } = claim.metadata;
  const place = { name, ...(namespace !== undefined && { namespace }) };
  try {
    const live = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, place, { signal });
    return claimUid(live) === claimUid(claim) ? live : undefined;
  } catch (error) {
    if (error instanceof NotFoundError && !isUnservedResource(error)) return undefined;
    throw error;
  }
}
