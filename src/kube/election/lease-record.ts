import type { KubeObject, Resource } from '../kube-object.ts';

export const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'create', 'update'],
};

/** What is done with an object whose name is known, such as a lock. */
export const lockVerbs: readonly string[] = ['get', 'create', 'update'];

/** coordination.k8s.io/v1 Lease. */
export interface Lease extends KubeObject {
  spec?: LeaseRecord;
}

/** `spec` of a Lease. Times are RFC 3339 with microseconds. */
export interface LeaseRecord {
  holderIdentity?: string | null;
  leaseDurationSeconds?: number | null;
  acquireTime?: string | null;
  renewTime?: string | null;
  leaseTransitions?: number | null;
}

/** `metav1.MicroTime` of a moment in milliseconds since the epoch. */
export function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}

/** A text that changes whenever the record does. */
export function recordText(record: LeaseRecord | undefined): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = record ?? {};
  return JSON.stringify([
    holderIdentity ?? '',
    leaseDurationSeconds ?? 0,
    acquireTime ?? '',
    renewTime ?? '',
    leaseTransitions ?? 0,
  ]);
}
