import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createNodeChoice, type NodeChoicePolicy } from '../../../sandbox/control-plane/node-choice.ts';

const names = ['n1', 'n2', 'n3'];

function choose(policy: NodeChoicePolicy, times: number, podsOn: (node: string) => number = () => 0): string[] {
  const choice = createNodeChoice(policy, podsOn);
  return Array.from({ length: times }, () => choice(names));
}

describe('createNodeChoice', () => {
  test('first takes the first name', () => {
    assert.deepEqual(choose('first', 2), ['n1', 'n1']);
  });

  test('round robin goes round, also when the last node is no longer among them', () => {
    assert.deepEqual(choose('roundRobin', 4), ['n1', 'n2', 'n3', 'n1']);
    const choice = createNodeChoice('roundRobin', () => 0);
    assert.deepEqual([choice(['n2']), choice(['n1', 'n3']), choice(['n1'])], ['n2', 'n3', 'n1']);
  });

  test('spread takes the emptiest node', () => {
    assert.deepEqual(
      choose('spread', 1, (node) => (node === 'n2' ? 1 : 5)),
      ['n2'],
    );
  });

  test('random gives the same sequence for the same seed and reaches every node', () => {
    const sequence = choose({ randomSeed: 7 }, 60);
    assert.deepEqual(choose({ randomSeed: 7 }, 60), sequence);
    assert.notDeepEqual(choose({ randomSeed: 8 }, 60), sequence);
    assert.deepEqual([...new Set(sequence)].toSorted(), names);
  });
});
