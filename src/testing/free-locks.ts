import { type KubeClient, type KubeObject, type Resource } from '../index.ts';

export const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};
const endpoints: Resource = { group: '', version: 'v1', plural: 'endpoints', kind: 'Endpoints', namespaced: true };
/** Of Endpoints that are a lock (client-go, "resourcelock"). */
const leaderKey = 'control-plane.alpha.kubernetes.io/leader';

type Lock = KubeObject & { spec?: { holderIdentity?: string | null } };

/**
 * Frees all locks of leader elections, as a process does that ends in order: the one that held them was killed, and nobody has to wait
 * until they expire.
 */
export async function freeLocks(client: KubeClient): Promise<void> {
  for (const { metadata, spec } of await client.list<Lock>(leases)) {
    if ((spec?.holderIdentity ?? '') === '') continue;
    const body = { spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
    await client.patch(leases, metadata, { type: 'merge', body });
  }
  for (const { metadata } of await client.list(endpoints)) {
    const text = metadata.annotations?.[leaderKey];
    if (text === undefined) continue;
    const freed = JSON.stringify({ ...(JSON.parse(text) as object), holderIdentity: '', leaseDurationSeconds: 1 });
    const body = { metadata: { annotations: { [leaderKey]: freed } } };
    await client.patch(endpoints, metadata, { type: 'merge', body });
  }
}
