import { ConflictError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject, ObjectName, Resource } from '../../kube/kube-object.ts';
import { persistentVolumeClaims } from '../../provision/objects.ts';

/** Protects the source of a running clone from deletion. On claims. */
export const cloningProtectionFinalizer = 'provisioner.storage.kubernetes.io/cloning-protection';
/** The change of a claim that protects it, or ends its protection. */
export const cloningProtection = { resource: persistentVolumeClaims, finalizer: cloningProtectionFinalizer } as const;
/** Protects the source of a running restore from deletion. On VolumeSnapshots. */
export const snapshotProtectionFinalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';

/** Reads and writes of one change before a conflict is passed on. */
const attempts = 5;

export interface FinalizerChange<T extends KubeObject> {
  client: KubeClient;
  resource: Resource;
  object: ObjectName;
  finalizer: string;
  signal?: AbortSignal | undefined;
  /** Checks the object as just read, before it is written; throws to leave it unchanged. */
  check?: (live: T) => void;
  /** The caller goes on without permission to write the object. Default false. */
  optional?: boolean;
}

/**
 * Appends a finalizer to an object, read live and written whole; a conflict is read again. Nothing is written when it
 * is there already.
 *
 * @throws `ApiError` as the server gave it; a conflict only after several in a row.
 */
export async function addFinalizer<T extends KubeObject>(change: FinalizerChange<T>): Promise<void> {
  await rewrite(change, (finalizers) =>
    finalizers.includes(change.finalizer) ? undefined : [...finalizers, change.finalizer],
  );
}

/**
 * Removes every occurrence of a finalizer from an object; the others keep their order. Nothing is written when it has
 * none.
 *
 * @throws `ApiError` as the server gave it, NotFound included.
 */
export async function removeFinalizer<T extends KubeObject>(change: FinalizerChange<T>): Promise<void> {
  await rewrite(change, (finalizers) =>
    finalizers.includes(change.finalizer) ? finalizers.filter((name) => name !== change.finalizer) : undefined,
  );
}

async function rewrite<T extends KubeObject>(
  { client, resource, object, check, signal, optional = false }: FinalizerChange<T>,
  next: (finalizers: string[]) => string[] | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const live = await client.get<T>(resource, object, { signal });
    check?.(live);
    const finalizers = next(live.metadata.finalizers ?? []);
    if (finalizers === undefined) return;
    try {
      await client.update<T>(resource, { ...live, metadata: { ...live.metadata, finalizers } }, { signal, optional });
      return;
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt >= attempts) throw error;
    }
  }
}
