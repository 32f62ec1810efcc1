import { ForbiddenError } from '../../src/kube/api-error.ts';
import type { KubeClient } from '../../src/kube/kube-client.ts';
import type { LockName } from '../../src/kube/lock-kind.ts';
import { LockNotes } from '../../src/run/lock-notes.ts';

export { ownNamespace } from '../../src/run/own-namespace.ts';

/**
 * What a provisioner has noted on its lock, of whichever kind. A kind that the caller may not read is left out.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read.
 */
export async function notedOnLock(
  key: string,
  { client, namespace, name }: { client: KubeClient; namespace: string; name: string },
  signal: AbortSignal,
): Promise<string[]> {
  const found = new Set<string>();
  for (const kind of ['lease', 'endpoints'] satisfies LockName[]) {
    const notes = new LockNotes({ client, held: [kind], namespace, name });
    const values = await notes.read(key, signal).catch((error: unknown) => {
      if (error instanceof ForbiddenError) return [];
      throw error;
    });
    for (const value of values) found.add(value);
  }
  return [...found];
}
