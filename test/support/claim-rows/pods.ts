/** Pods, and the scheduler. */
import type { Row, World } from './row.ts';

const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const onNode = (world: World) => ({ 'kubernetes.io/hostname': world.name('node') });

export const pods: readonly Row[] = [
  {
    title: 'a Pod that fits no node',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      const message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
      const refusal = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
      await world.patch({ kind: 'pod', name: 'p' }, { status: { phase: 'Pending', conditions: [refusal] } });
    },
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /^Pod p uses the claim and cannot be scheduled\. The scheduler: .*node/,
    advises: /^Make a node fit the Pod/,
    cure: (world) => world.addNode(),
    ends: 'bound',
  },
  {
    title: 'a Pod that a scheduling gate holds',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world), schedulingGates: [{ name: 'example.com/quota' }] });
    },
    recorded: (world) => world.patch({ kind: 'pod', name: 'p' }, { status: { phase: 'Pending' } }),
    verdict: 'waiting',
    cause: 'pod-unschedulable',
    says: /held by scheduling gates: example\.com\/quota\.$/,
    advises: /gates/,
    cure: (world) => world.patch({ kind: 'pod', name: 'p' }, { spec: { schedulingGates: null } }),
    ends: 'bound',
  },
];
