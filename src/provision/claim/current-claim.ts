import { isUnservedResource, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { claimUid } from './claim-fields.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../objects.ts';

/** The claim of this name on the API server; undefined if there is none. @throws whatever the client throws. */
export async function liveClaim(
  client: Pick<KubeClient, 'get'>,
  { namespace, name }: { namespace?: string | undefined; name: string },
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const place = { name, ...(namespace !== undefined && { namespace }) };
  try {
    return await client.get<PersistentVolumeClaim>(persistentVolumeClaims, place, { signal });
  } catch (error) {
    // any other 404 is that of a proxy, or of a server that is still starting
    if (error instanceof NotFoundError && !isUnservedResource(error)) return undefined;
    throw error;
  }
}

/** The claim on the API server; undefined if it is gone, also if another one has its name. @throws as `liveClaim`. */
export async function currentClaim(
  client: Pick<KubeClient, 'get'>,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const live = await liveClaim(client, claim.metadata, signal);
  return live !== undefined && claimUid(live) === claimUid(claim) ? live : undefined;
}
