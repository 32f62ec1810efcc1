/** Claims and volumes as kube-controller-manager binds, protects and releases them. */
import type { Row } from './row.ts';

const attacherFinalizer = 'external-attacher/csi-example-com';

export const binding: readonly Row[] = [
  {
    title: 'a class that does not exist',
    arrange: (world) => world.addClaim(),
    recorded: () => Promise.resolve(),
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass \S+ does not exist\.$/,
    advises: /^Create the class/,
    cure: (world) => world.addClass(),
    ends: 'bound',
  },
  {
    title: "a volume of policy Retain that was deleted and that an attacher's finalizer holds",
    object: (world) => `pv/${world.name('volume')}`,
    async arrange(world) {
      await world.addVolume({}, { finalizers: [attacherFinalizer] });
      await world.remove({ kind: 'volume', name: world.name('volume') });
    },
    recorded: (world) =>
      world.patch(
        { kind: 'volume', name: world.name('volume') },
        { metadata: { finalizers: [attacherFinalizer] }, status: { phase: 'Available' } },
      ),
    verdict: 'stuck',
    cause: 'deleting',
    says: /is held by external-attacher\/csi-example-com\.$/,
    advises: /check that they run/,
    cure: (world) => world.patch({ kind: 'volume', name: world.name('volume') }, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that a Pod uses and that is being deleted',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await world.addClaim();
      await world.bound();
      await world.addPod({ nodeSelector: { 'kubernetes.io/hostname': world.name('node') } });
      await world.placed();
    },
    async recorded(world) {
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
      await world.remove({ kind: 'claim', name: 'c' });
    },
    cluster: (world) => world.remove({ kind: 'claim', name: 'c' }),
    verdict: 'stuck',
    cause: 'deleting',
    says: /because it is used by Pod p\.$/,
    advises: /^Delete the Pods that use it/,
    cure: (world) => world.remove({ kind: 'pod', name: 'p' }),
    ends: 'gone',
  },
];
