import { systemClock } from '../../src/base/clock.ts';
import { ForbiddenError } from '../../src/kube/client/api-error.ts';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import { readJournal } from '../../src/provision/intent-journal/read-journal.ts';
import type { Plan } from '../../src/provision/recoverable.ts';
import { journalLock } from '../../src/run/lock-name.ts';

/** The volumes in progress, or why they are not known. */
export type OpenPlans = { plans: Plan[]; unknown?: undefined } | { plans: []; unknown: string };

/**
 * The volumes in progress, from the intent journal of a provisioner.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read for reasons other than missing permission.
 */
export async function openPlans(options: {
  client: KubeClient;
  /** Of the lock. */
  namespace: string;
  lockName: string;
  provisionerName: string;
}): Promise<OpenPlans> {
  const { client, namespace, lockName, provisionerName } = options;
  try {
    const { records, unreadable } = await readJournal({
      client,
      namespace,
      lockName: journalLock(lockName),
      isKnownProvisioner: (name) => name === provisionerName,
      clock: systemClock,
    });
    if (unreadable.length === 0) return { plans: records.map(({ record }) => record.plan) };
    return { plans: [], unknown: `the journal cannot be read: ${unreadable.join(', ')}` };
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    return { plans: [], unknown: `the journal cannot be read, which needs get and list of Leases in ${namespace}` };
  }
}
