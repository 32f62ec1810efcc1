import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ChaosOptions, parseOptions } from '../../scripts/chaos/options.ts';
import { Random } from '../../scripts/chaos/random.ts';

function parsed(...argv: string[]): ChaosOptions {
  const options = parseOptions(argv);
  if (options === 'help') throw new Error('help was not asked for');
  return options;
}

describe('the command line of a chaos run', () => {
  test('picks disturbances by name', () => {
    assert.deepEqual([...parsed('--only', 'driver,classes').disturbances], ['driver', 'classes']);
    assert.equal(parsed('--without', 'api,driver').disturbances.has('driver'), false);
    assert.throws(() => parseOptions(['--only', 'weather']), /--only: "weather" is not one of deletions, admin,/);
  });

  test('leaves out what cannot be had', () => {
    assert.equal(parsed('--no-election').disturbances.has('lease'), false);
    assert.equal(parsed('--cluster=kubernetes').disturbances.has('api'), false);
    assert.equal(parsed().disturbances.has('back'), false);
    assert.equal(parsed('--journal=lease').disturbances.has('back'), true);
    assert.equal(parsed().disturbances.has('other'), false);
    assert.equal(parsed('--other', 'some/sidecar').disturbances.has('other'), true);
  });

  test('lets two sidecars run at once only without an election, and names volumes in one way', () => {
    const { together, disturbances } = parsed('--no-election', '--together');
    assert.equal(together, true);
    assert.deepEqual(
      ['overlap', 'prefix', 'collide', 'lease'].filter((name) => (disturbances as ReadonlySet<string>).has(name)),
      [],
    );
    assert.throws(() => parseOptions(['--together']), /--together needs --no-election/);
  });

  test('refuses what is no number', () => {
    assert.throws(() => parseOptions(['--kills=0']), /--kills: "0" is no whole number of at least 1/);
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
