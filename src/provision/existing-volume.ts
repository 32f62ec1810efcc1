import type { KubeClient } from '../kube/kube-client.ts';
import { isReduced } from '../kube/reduced-object.ts';
import { claimUid } from './claim-facts.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from './objects.ts';

/**
 * Whether a volume that exists already is reserved for the claim. One whose cached form lacks the reference is read
 * live.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read.
 */
export async function isReservedFor(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  { client, signal }: { client: KubeClient; signal: AbortSignal },
): Promise<boolean> {
  const { name } = volume.metadata;
  const whole = isReduced(volume)
    ? await client.get<PersistentVolume>(persistentVolumes, { name }, { signal })
    : volume;
  const reference = whole.spec.claimRef;
  if ((reference?.uid ?? '') !== '') return reference?.uid === claimUid(claim);
  return reference?.namespace === claim.metadata.namespace && reference?.name === claim.metadata.name;
}
