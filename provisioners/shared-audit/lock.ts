import { ForbiddenError } from '../../src/kube/client/api-error.ts';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { LockName } from '../../src/kube/election/lease-record.ts';
import { compatibleElection } from '../../src/run/election.ts';
import { leaseName, ownNamespace } from '../../src/run/lock-name.ts';
import { LockNotes } from '../../src/run/provisioner-parts.ts';
import { silentLogger } from '../../src/base/logger.ts';

export { ownNamespace } from '../../src/run/lock-name.ts';

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

/**
 * The locks that a provisioner's journal may belong to: with the compatible election, and without any.
 *
 * @param namespace - of the election; empty: the pod's own.
 */
export function possibleLocks(provisionerName: string, namespace: string): { namespace: string; name: string }[] {
  const own = ownNamespace();
  const { lockName = '' } = compatibleElection(provisionerName);
  const elected = { namespace: namespace === '' ? own : namespace, name: lockName };
  const alone = { namespace: own, name: leaseName(provisionerName, silentLogger) };
  return elected.name === alone.name && elected.namespace === alone.namespace ? [alone] : [elected, alone];
}
