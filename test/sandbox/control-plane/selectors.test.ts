import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { whyNodeUnfit } from '../../../sandbox/control-plane/schedule-pod.ts';
import type { Node, Pod, SelectorRequirement } from '../../../sandbox/control-plane/objects.ts';
import { matchesLabelSelector, matchesNodeSelector } from '../../../sandbox/control-plane/selectors.ts';

const labels = { zone: 'a', size: '10' };
const node: Node = { metadata: { name: 'n1', labels } };

describe('selectors', () => {
  const requirements: [SelectorRequirement, boolean][] = [
    [{ key: 'zone', operator: 'In', values: ['a', 'b'] }, true],
    [{ key: 'zone', operator: 'In', values: ['b'] }, false],
    [{ key: 'none', operator: 'In', values: ['a'] }, false],
    [{ key: 'zone', operator: 'NotIn', values: ['b'] }, true],
    [{ key: 'none', operator: 'NotIn', values: ['a'] }, true],
    [{ key: 'zone', operator: 'NotIn', values: ['a'] }, false],
    [{ key: 'zone', operator: 'Exists' }, true],
    [{ key: 'none', operator: 'Exists' }, false],
    [{ key: 'none', operator: 'DoesNotExist' }, true],
    [{ key: 'zone', operator: 'DoesNotExist' }, false],
    [{ key: 'size', operator: 'Gt', values: ['9'] }, true],
    [{ key: 'size', operator: 'Gt', values: ['10'] }, false],
    [{ key: 'size', operator: 'Lt', values: ['11'] }, true],
    [{ key: 'zone', operator: 'Lt', values: ['11'] }, false],
    [{ key: 'zone', operator: 'Like', values: ['a'] }, false],
  ];
  for (const [requirement, want] of requirements) {
    const { key, operator, values = [] } = requirement;
    test(`${key} ${operator} [${values.join()}] is ${want}`, () => {
      assert.equal(matchesLabelSelector({ matchExpressions: [requirement] }, labels), want);
      assert.equal(matchesNodeSelector({ nodeSelectorTerms: [{ matchExpressions: [requirement] }] }, node), want);
    });
  }

  test('an empty label selector matches everything, an empty node selector or term nothing', () => {
    assert.equal(matchesLabelSelector({}, undefined), true);
    assert.equal(matchesNodeSelector({}, node), false);
    assert.equal(matchesNodeSelector({ nodeSelectorTerms: [{}] }, node), false);
  });

  test('one of several terms is enough, and fields name the node', () => {
    const byName = (name: string): object => ({
      nodeSelectorTerms: [
        { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] },
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] },
      ],
    });
    assert.equal(matchesNodeSelector(byName('n1'), node), true);
    assert.equal(matchesNodeSelector(byName('n2'), node), false);
  });
});

describe('whyNodeUnfit', () => {
  const pod = (spec: Pod['spec']): Pod => ({ metadata: { name: 'p' }, spec });
  const tainted = (effect: string): Node => ({ ...node, spec: { taints: [{ key: 'k', value: 'v', effect }] } });
  const cases: { name: string; spec: Pod['spec']; on: Node; want: string | undefined }[] = [
    { name: 'a plain node takes a plain pod', spec: {}, on: node, want: undefined },
    {
      name: 'a cordoned node takes nobody',
      spec: {},
      on: { ...node, spec: { unschedulable: true } },
      want: 'node(s) were unschedulable',
    },
    {
      name: 'a cordoned node takes who tolerates it',
      spec: { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
      on: { ...node, spec: { unschedulable: true } },
      want: undefined,
    },
    { name: 'a taint repels', spec: {}, on: tainted('NoSchedule'), want: 'node(s) had untolerated taint {k: v}' },
    { name: 'a preference does not repel', spec: {}, on: tainted('PreferNoSchedule'), want: undefined },
    {
      name: 'a toleration of key and value fits',
      spec: { tolerations: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] },
      on: tainted('NoSchedule'),
      want: undefined,
    },
    {
      name: 'a toleration of another value does not',
      spec: { tolerations: [{ key: 'k', value: 'w' }] },
      on: tainted('NoSchedule'),
      want: 'node(s) had untolerated taint {k: v}',
    },
    {
      name: 'a toleration of another effect does not',
      spec: { tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute' }] },
      on: tainted('NoSchedule'),
      want: 'node(s) had untolerated taint {k: v}',
    },
    {
      name: 'a toleration without key fits every taint',
      spec: { tolerations: [{ operator: 'Exists' }] },
      on: tainted('NoExecute'),
      want: undefined,
    },
    {
      name: 'the node selector must match',
      spec: { nodeSelector: { zone: 'b' } },
      on: node,
      want: "node(s) didn't match Pod's node affinity/selector",
    },
    {
      name: 'the required affinity must match',
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Exists' }] }],
            },
          },
        },
      },
      on: { metadata: { name: 'n2' } },
      want: "node(s) didn't match Pod's node affinity/selector",
    },
  ];
  for (const { name, spec, on, want } of cases) {
    test(name, () => {
      assert.equal(whyNodeUnfit(pod(spec), on), want);
    });
  }
});
