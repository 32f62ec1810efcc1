import { shortValue } from '../base/short-value.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import type { CallOptions, KubeClient } from '../kube/client/kube-client.ts';
import { betaStorageClassKey, type PersistentVolume, type StorageClass, storageClasses } from './objects.ts';

/**
 * The current class of a volume, read from the API server: for what `delete` decides by the class. It may have been recreated
 * with other parameters since the volume was created.
 *
 * @throws {Error} when the volume names no class, or one that does not exist any more: then its parameters are
 * unknown, and nothing should be deleted.
 * @throws {ApiError} and {TransportError} when the class cannot be read.
 */
export async function classOfVolume(
  client: KubeClient,
  { metadata, spec }: Pick<PersistentVolume, 'metadata' | 'spec'>,
  options: CallOptions = {},
): Promise<StorageClass> {
  const name = metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName ?? '';
  if (name === '') throw new Error('volume has no storage class');
  try {
    return await client.get<StorageClass>(storageClasses, { name }, options);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    const message = `StorageClass ${JSON.stringify(shortValue(name))} does not exist any more, and it decides what happens to the storage: recreate it`;
    throw new Error(`${message} (${error.message})`, { cause: error });
  }
}
