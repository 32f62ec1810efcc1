import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nearestName } from '../../../src/base/near-name.ts';

describe('the name that was meant', () => {
  for (const [wanted, meant, how] of [
    ['fsat', 'fast', 'two letters are swapped'],
    ['gp2', 'gp3', 'one letter differs'],
    ['Fast', 'fast', 'the case differs'],
    ['fast_ssd', 'fast-ssd', 'the separator differs'],
    ['csi.hostpath.k8s.io', 'hostpath.csi.k8s.io', 'the words are in another order'],
    ['ebs.csi.was.com', 'ebs.csi.aws.com', 'a long name has two swapped letters'],
    ['data1', 'data-1', 'a separator is missing'],
  ] as const) {
    test(`is found where ${how}: ${wanted}`, () => {
      assert.equal(nearestName(wanted, ['something-else', meant, 'standard']), meant);
    });
  }

  test('is the one with the fewest differences', () => {
    assert.equal(nearestName('standart', ['standards', 'standard', 'standrd']), 'standard');
  });

  for (const [wanted, names] of [
    ['fast', ['slow', 'standard']],
    ['a', ['b']],
    ['ssd', ['hdd']],
    ['fast', ['fast']],
    ['fast', []],
  ] as const) {
    test(`is none of ${names.join(', ') || 'no names'} for ${wanted}`, () => {
      assert.equal(nearestName(wanted, names), undefined);
    });
  }
});
