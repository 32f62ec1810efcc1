import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimIn, schedulingCure } from '../../../src/explain/scheduler-words.ts';

describe('what to do about a refusal of the scheduler', () => {
  for (const { name, refusal, cure } of [
    {
      name: 'goes by the reason of most nodes',
      refusal:
        '0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient memory. preemption: 0/5 nodes are available.',
      cure: /^Free some of that on a node/,
    },
    {
      name: 'goes by taints only where nothing else is said',
      refusal:
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 3 node(s) had untolerated taint(s).",
      cure: /--show-labels$/,
    },
    {
      name: 'removes a taint that all nodes have',
      refusal: '0/1 nodes are available: 1 node(s) had untolerated taint {example.com/gpu: }. preemption: not helpful.',
      cure: /: kubectl taint nodes NODE KEY-$/,
    },
    {
      name: 'names the limit of volumes',
      refusal: '0/2 nodes are available: 2 node(s) exceed max volume count.',
      cure: /allocatable\.count in its CSINode/,
    },
    {
      name: 'names the node plugin of a driver',
      refusal: '0/1 nodes are available: 1 d.example.com CSI driver is not installed on the node.',
      cure: /node plugin/,
    },
    {
      name: 'is about devices for a claim of devices',
      refusal: '0/1 nodes are available: 1 cannot allocate all claims.',
      cure: /resourceclaims/,
    },
    {
      name: 'is about constraints between Pods',
      refusal: "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.",
      cure: /podAntiAffinity/,
    },
    { name: 'adds a node where there is none', refusal: 'no nodes available to schedule pods', cure: /^Add a node/ },
    { name: 'knows no more than an unknown text', refusal: 'the extender is on fire', cure: /as the message says$/ },
  ]) {
    test(name, () => assert.match(schedulingCure(refusal), cure));
  }
});

test('finds the claim that a refusal of the scheduler names', () => {
  for (const [refusal, name] of [
    ['0/1 nodes are available: persistentvolumeclaim "logs" not found. not found', 'logs'],
    ['waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"', 'p-scratch'],
    ['binding volumes: provisioning failed for PVC "data"', 'data'],
    ['running PreFilter plugin "VolumeBinding": error getting PVC "ns1/data": not found', 'data'],
    ['no class for claim "ns1/data"', 'data'],
    ['0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.', undefined],
    [
      '0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode',
      undefined,
    ],
  ] as const) {
    assert.equal(claimIn(refusal), name, refusal);
  }
});
