import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { mayUse } from '../kube/client/access-review.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { lockVerbs } from '../kube/election/lease-record.ts';
import { lockKinds, type LockName } from '../kube/election/lock-kind.ts';

/** Pause until a review that the API server did not respond to is repeated, in milliseconds. */
const pauseMs = 2000;

/**
 * The locks that this process is permitted to hold, in the order in which all processes must take them: Endpoints first,
 * then the Lease. A process with both holds both, so that it competes with programs from before there were Leases as well
 * as with those that know nothing else. The Lease where neither is permitted: what is missing is then reported.
 *
 * @returns an empty list when `stop` aborts first.
 */
export async function permittedLocks(options: {
  client: KubeClient;
  namespace: string;
  name: string;
  stop: AbortSignal;
  clock: Clock;
  logger: Logger;
}): Promise<LockName[]> {
  const { client, namespace, name, stop, clock, logger } = options;
  while (!stop.aborted) {
    try {
      const found: LockName[] = [];
      for (const lock of ['endpoints', 'lease'] as const) {
        const { resource } = lockKinds[lock];
        if (await mayUse(client, resource, { namespace, name, verbs: lockVerbs }, { signal: stop })) found.push(lock);
      }
      return found.length === 0 ? ['lease'] : found;
    } catch (error) {
      logger.warn({ err: error }, 'The permitted locks could not be determined, trying again');
      await clock.sleep(pauseMs, { signal: stop }).catch(() => undefined);
    }
  }
  return [];
}
