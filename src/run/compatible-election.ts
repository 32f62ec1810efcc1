import type { ElectionSettings } from './election.ts';

/**
 * An election that also excludes programs on the Go library from before Leases, `sig-storage-lib-external-provisioner` up to v8: on the
 * Endpoints object that they lock, if that is permitted, and on a Lease of the same name. A replacement of such a program has the
 * permissions on its lock already.
 *
 * @param namespace - of the lock. Default: the pod's own, else `default`.
 */
export function compatibleElection(provisionerName: string, namespace?: string): ElectionSettings {
  return { namespace, lockName: provisionerName.replaceAll('/', '-'), endpointsLock: true };
}
