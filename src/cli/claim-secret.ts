/** The Secret that a driver gets for a claim, for explanations: as the sidecar finds it, as far as the cluster shows it. */
import { isDeepStrictEqual } from 'node:util';
import { silentLogger } from '../base/logger.ts';
import { secretReference } from '../csi/secrets/secret-reference.ts';
import type { PersistentVolumeClaim, SecretReference, StorageClass } from '../provision/objects.ts';

/**
 * The Secret of `CreateVolume`. What flags of the sidecar decide is not in the cluster: a name that a template makes of the
 * volume's name counts as none.
 *
 * @throws {Error} for parameters that name no Secret, which the sidecar records as an event.
 */
export function claimSecret(storageClass: StorageClass, claim: PersistentVolumeClaim): SecretReference | undefined {
  const { namespace = '', name, annotations } = claim.metadata;
  const [one, other] = ['one', 'other'].map((volumeName) => {
    const context = { volumeName, claim: { namespace, name, annotations } };
    return secretReference('provisioner', storageClass.parameters ?? {}, context, silentLogger);
  });
  return isDeepStrictEqual(one, other) ? one : undefined;
}
