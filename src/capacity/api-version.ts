/** Which version of the API a cluster has for capacity objects. */
import { ApiError, InvalidError, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { type CapacityApiVersion, storageCapacities, type StorageCapacity } from './storage-capacity.ts';

/** The API server's response does not reveal the version. */
export class CapacityApiError extends Error {
  override readonly name = 'CapacityApiError';
}

export interface CapacityApi {
  version: CapacityApiVersion;
  /** The namespace does not exist yet: the objects can be created once it does. */
  namespaceMissing: boolean;
}

/** An invalid object name. */
const invalidName = '#%123-invalid-name';

/**
 * Sends a create that must be rejected: a version that the API server serves rejects the object, one that it does not
 * serve has no such path. Creates nothing and needs no permission beyond that of publishing.
 *
 * @throws {CapacityApiError} for any other response, such as a missing permission, and when there is none.
 */
export async function detectCapacityApi(options: {
  client: KubeClient;
  namespace: string;
  signal?: AbortSignal | undefined;
}): Promise<CapacityApi> {
  const { client, namespace, signal } = options;
  let created: StorageCapacity;
  try {
    const probe = { metadata: { name: invalidName, namespace } } as StorageCapacity;
    created = await client.create(storageCapacities('v1'), probe, { signal });
  } catch (error) {
    if (isInvalid(error)) return { version: 'v1', namespaceMissing: false };
    // A missing namespace is a 404, too, but shows that the path exists.
    if (isMissingNamespace(error)) return { version: 'v1', namespaceMissing: true };
    if (isNotFound(error)) return { version: 'v1beta1', namespaceMissing: false };
    const text = error instanceof Error ? error.message : String(error);
    throw new CapacityApiError(`unexpected error when checking for the V1 CSIStorageCapacity API: ${text}`, {
      cause: error,
    });
  }
  throw new CapacityApiError(
    `creating an invalid v1.CSIStorageCapacity didn't fail as expected, got: ${JSON.stringify(created)}`,
  );
}

function isInvalid(error: unknown): boolean {
  return error instanceof InvalidError || hasBareCode(error, 422);
}

function isNotFound(error: unknown): boolean {
  return error instanceof NotFoundError || hasBareCode(error, 404);
}

function isMissingNamespace(error: unknown): boolean {
  return error instanceof NotFoundError && error.status.details?.kind === 'namespaces';
}

/** The code decides where the reason is unknown to us. */
function hasBareCode(error: unknown, code: number): boolean {
  return error instanceof ApiError && error.constructor === ApiError && error.code === code;
}
