/** Which version of the API a cluster has for capacity objects. */
import { ApiError, InvalidError, NotFoundError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { type CapacityApiVersion, storageCapacities, type StorageCapacity } from './storage-capacity.ts';

/** The API server's answer does not show the version. */
export class CapacityApiError extends Error {
  override readonly name = 'CapacityApiError';
}

export interface CapacityApi {
  version: CapacityApiVersion;
  /** The namespace is not there: its objects can be made once it is. */
  namespaceMissing: boolean;
}

/** A name that no object can have. */
const invalidName = '#%123-invalid-name';

/**
 * Asks the API server to create what it must refuse: a version that it knows refuses the object, one that it does not
 * know has no such path. Creates nothing and needs no other right than publishing itself.
 *
 * @throws {CapacityApiError} for any other answer: rights are missing, or nobody answers.
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
    // A missing namespace is a 404, too, and says nothing about the API but that it got as far as looking.
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

/** The code counts where the reason is none that we know. */
function hasBareCode(error: unknown, code: number): boolean {
  return error instanceof ApiError && error.constructor === ApiError && error.code === code;
}
