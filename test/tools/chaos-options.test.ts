import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseOptions } from '../../scripts/chaos/options.ts';
import { Random } from '../../scripts/chaos/random.ts';

describe('the command line of a chaos run', () => {
  test('picks disturbances by name', () => {
    assert.deepEqual([...parseOptions(['--only', 'driver,classes']).disturbances], ['driver', 'classes']);
    assert.equal(parseOptions(['--without', 'api,driver']).disturbances.has('driver'), false);
  });

  test('leaves out what cannot be had', () => {
    assert.equal(parseOptions(['--no-election']).disturbances.has('lease'), false);
    assert.equal(parseOptions(['--cluster=kubernetes']).disturbances.has('api'), false);
    assert.equal(parseOptions([]).disturbances.has('back'), false);
    assert.equal(parseOptions(['--journal=lease']).disturbances.has('back'), true);
    assert.equal(parseOptions([]).disturbances.has('other'), false);
    assert.equal(parseOptions(['--other', 'some/sidecar']).disturbances.has('other'), true);
  });

  test('lets two sidecars run at once only without an election, and names volumes in one way', () => {
    const { together, disturbances } = parseOptions(['--no-election', '--together']);
    assert.equal(together, true);
    assert.deepEqual(
      ['overlap', 'prefix', 'collide', 'lease'].filter((name) => (disturbances as ReadonlySet<string>).has(name)),
      [],
    );
  });
});

describe('random numbers of a chaos run', () => {
  const draws = (random: Random): number[] => Array.from({ length: 5 }, () => random.next());

  test('come again with the same seed, and are others with another', () => {
    assert.deepEqual(draws(new Random('a')), draws(new Random('a')));
    assert.notDeepEqual(draws(new Random('a')), draws(new Random('b')));
  });

  test('of one stream do not depend on what another has drawn', () => {
    const random = new Random('a');
    draws(random);
    assert.deepEqual(draws(random.stream('x')), draws(new Random('a').stream('x')));
    assert.notDeepEqual(draws(random.stream('x')), draws(random.stream('y')));
  });

  test('are spread over the whole range', () => {
    const random = new Random('spread');
    const hits = new Set(Array.from({ length: 1000 }, () => Math.floor(random.between(0, 10))));
    assert.deepEqual([...hits].toSorted(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
