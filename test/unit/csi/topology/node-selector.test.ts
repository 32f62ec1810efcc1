import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { selectsNode } from '../../../../src/csi/topology/topology-term.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../../../../src/provision/objects.ts';

const labels = { zone: 'a', rank: '5', below: '-7', beyond: '9'.repeat(20) };
const when = (...matchExpressions: NodeSelectorRequirement[]): NodeSelectorTerm => ({ matchExpressions });
const only = (key: string, operator: string, ...values: string[]): NodeSelectorTerm[] => [
  when({ key, operator, values }),
];

describe('selectsNode', () => {
  const cases: [string, NodeSelectorTerm[], boolean][] = [
    ['no terms', [], false],
    ['a term that says nothing', [{}], false],
    ['In', only('zone', 'In', 'b', 'a'), true],
    ['In, another value', only('zone', 'In', 'b'), false],
    ['In, no such label', only('rack', 'In', 'a'), false],
    ['NotIn', only('zone', 'NotIn', 'b'), true],
    ['NotIn, the value', only('zone', 'NotIn', 'a'), false],
    ['NotIn, no such label', only('rack', 'NotIn', 'a'), true],
    ['Exists', only('zone', 'Exists'), true],
    ['Exists, no such label', only('rack', 'Exists'), false],
    ['DoesNotExist', only('rack', 'DoesNotExist'), true],
    ['DoesNotExist, there is one', only('zone', 'DoesNotExist'), false],
    ['Gt', only('rank', 'Gt', '4'), true],
    ['Gt, equal', only('rank', 'Gt', '5'), false],
    ['Lt', only('rank', 'Lt', '6'), true],
    ['Lt, a label below 0, as a driver may report it', only('below', 'Lt', '0'), true],
    ['Gt, a label below 0', only('below', 'Gt', '0'), false],
    ['Lt, the greatest', only('rank', 'Lt', String(2n ** 63n - 1n)), true],
    ['Lt, a label beyond 64 bits', only('beyond', 'Lt', '6'), false],
    ['Gt, a label beyond 64 bits', only('beyond', 'Gt', '6'), false],
    ['Lt, a label that is no number', only('zone', 'Lt', '6'), false],
    [
      'all conditions of a term must hold',
      [when({ key: 'zone', operator: 'Exists' }, { key: 'rack', operator: 'Exists' })],
      false,
    ],
    ['one term is enough', [...only('zone', 'In', 'b'), ...only('rank', 'Exists')], true],
    ['fields exclude nobody', [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['x'] }] }], true],
    ['a term that cannot be read beside one that fits', [...only('zone', 'Bad'), ...only('zone', 'Exists')], true],
  ];
  for (const [name, terms, fits] of cases) {
    test(name, () => assert.equal(selectsNode(terms, labels), fits));
  }

  test('an unknown operator is an error', () => {
    assert.throws(() => selectsNode(only('zone', 'Bad'), labels), {
      message:
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Bad": supported values: "In", "NotIn", ' +
        '"Exists", "DoesNotExist", "Gt", "Lt"',
    });
  });

  for (const bound of ['x', '', '1.5', '0x1', '1_0', '-6', '+6', String(2n ** 63n), '9'.repeat(40)]) {
    for (const operator of ['Gt', 'Lt'] as const) {
      test(`a bound ${JSON.stringify(bound)} of ${operator}, which is no label or no number of 64 bits, is an error`, () => {
        assert.throws(() => selectsNode([...only('zone', 'In', 'b'), ...only('rank', operator, bound)], labels), {
          message: /^nodeSelectorTerms\[1\]\.matchExpressions\[0\]\.values: /,
        });
      });
    }
  }
});
