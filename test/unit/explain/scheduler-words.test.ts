import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClusterNode, Pod } from '../../../src/explain/cluster-objects.ts';
import { claimIn, schedulingCure } from '../../../src/explain/scheduler-words.ts';

const pod: Pod = { metadata: { name: 'p' } };

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
    test(name, () => assert.match(schedulingCure(refusal, { pod, nodes: undefined }), cure));
  }
});

describe('what to do about nodes of which the scheduler asks no further', () => {
  const of = (name: string, spec: object = {}, labels: Record<string, string> = {}): ClusterNode => ({
    metadata: { name, labels },
    spec,
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const selecting = { metadata: { name: 'p' }, spec: { nodeSelector: { disk: 'ssd' } } };
  const cure = (refusal: string, nodes: ClusterNode[], by: Pod = selecting): string =>
    schedulingCure(refusal, { pod: by, nodes });

  test('is about the only node that the Pod may use, however many it may not', () => {
    const refusal =
      "0/8 nodes are available: 1 node(s) exceed max volume count, 7 node(s) didn't match Pod's node affinity/selector.";
    assert.match(schedulingCure(refusal, { pod, nodes: undefined }), /^A node takes as many volumes/);
  });

  const cordoned =
    "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.";

  test('uncordons the node that the Pod may use', () => {
    const nodes = [of('n1', { unschedulable: true }, { disk: 'ssd' }), of('n2'), of('n3')];
    assert.equal(cure(cordoned, nodes), 'Let Pods run on it: kubectl uncordon n1');
  });

  test('is about the selector where the Pod may not use the cordoned node either', () => {
    assert.match(cure(cordoned, [of('n1', { unschedulable: true }), of('n2'), of('n3')]), /^Correct nodeSelector/);
  });

  test('counts required node affinity, by labels and by name', () => {
    const by = (term: object): Pod => ({
      metadata: { name: 'p' },
      spec: {
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
      },
    });
    const nodes = [of('n1', { unschedulable: true }), of('n2')];
    const named = by({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] });
    assert.match(cure(cordoned, nodes, named), /uncordon n1$/);
    const labelled = by({ matchExpressions: [{ key: 'disk', operator: 'Exists' }] });
    assert.match(cure(cordoned, nodes, labelled), /^Correct nodeSelector/);
  });

  test('removes the taint of the node that the Pod may use', () => {
    const refusal =
      "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {gpu: }.";
    const nodes = [of('n1', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }, { disk: 'ssd' }), of('n2')];
    assert.match(cure(refusal, nodes), /: kubectl taint nodes n1 gpu:NoSchedule-$/);
  });
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
