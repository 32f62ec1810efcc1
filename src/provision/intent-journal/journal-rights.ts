import { mayUse } from '../../kube/client/access-review.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { journalLeases, ShardStorage } from './shard-storage.ts';

/**
 * Whether the API server says that this process may not use the Leases of the journal. To be asked after a request was forbidden: a
 * server that has just started, and knows no roles yet, forbids the question as well.
 *
 * @returns false also where nobody knows, as the question is refused or not served.
 */
export async function isDenied(
  journal: { client: KubeClient; namespace: string; lockName: string },
  signal: AbortSignal,
): Promise<boolean> {
  const { client, namespace } = journal;
  const { verbs = [] } = journalLeases;
  try {
    const name = new ShardStorage(journal).nameOf(0);
    return !(await mayUse(client, journalLeases, { namespace, name, verbs }, { optional: 'reported', signal }));
  } catch {
    return false;
  }
}
