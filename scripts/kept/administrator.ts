import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../../bench/bench-cluster.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '../../src/provision/objects.ts';
import { insist, type World } from '../chaos/world.ts';

/** Requests under way at once. */
const width = 20;

/** Volumes that are moved to another cluster: set to Retain, then their claims are deleted, then they themselves. */
export async function moveAway(world: World, names: readonly string[]): Promise<void> {
  await inParallel(names.length, width, (index) => moveOne(world, names[index] ?? ''));
}

async function moveOne({ client }: World, name: string): Promise<void> {
  const retain = { spec: { persistentVolumeReclaimPolicy: 'Retain' } };
  const volume = await insist(() =>
    client.patch<PersistentVolume>(persistentVolumes, { name }, { type: 'merge', body: retain }),
  );
  const claim = volume?.spec.claimRef ?? {};
  const claimName = { namespace: claim.namespace ?? '', name: claim.name ?? '' };
  await insist(() => client.delete(persistentVolumeClaims, claimName), ['NotFound']);
  while (await insist(() => client.get<PersistentVolumeClaim>(persistentVolumeClaims, claimName), ['NotFound'])) {
    await delay(100);
  }
  await insist(() => client.delete(persistentVolumes, { name }), ['NotFound']);
  // Nobody else would: the sidecar does not run, and it is the one that takes its finalizer off.
  const bare = { metadata: { finalizers: null } };
  await insist(() => client.patch(persistentVolumes, { name }, { type: 'merge', body: bare }), ['NotFound']);
}
