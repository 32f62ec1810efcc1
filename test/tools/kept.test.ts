import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseOptions } from '../../scripts/chaos/kept-options.ts';
import { keptFindings } from '../../scripts/chaos/kept-story.ts';

describe('the command line of a kept run', () => {
  test('runs the sources on the real control plane by default, with the flags of the image', () => {
    const { cluster, mode, records, sidecar, timeoutMs } = parseOptions([]);
    assert.deepEqual([cluster, mode, records, timeoutMs], ['kubernetes', 'crash', 2000, 5000]);
    assert.match(
      sidecar,
      / --disable-sigusr1 --max-old-space-size-percentage=70 --max-semi-space-size=4 \/.*src\/main\.ts$/,
    );
  });

  test('takes a bundle or a whole command in their place', () => {
    assert.match(parseOptions(['--bundle', 'dist/some.js']).sidecar, / --max-semi-space-size=4 \/.*\/dist\/some\.js$/);
    assert.equal(parseOptions(['--sidecar', 'some/program --flag']).sidecar, 'some/program --flag');
  });

  test('takes a pause of no seconds', () => {
    assert.equal(parseOptions(['--quiet=0']).quietMs, 0);
  });

  test('takes another sidecar for the mode of that name', () => {
    assert.equal(parseOptions(['--mode=other', '--other=some/sidecar']).other, 'some/sidecar');
  });
});

describe('the count of a kept run', () => {
  const kept = [1, 2, 3, 4].map((n) => ({ claimUid: `claim-${n}`, handle: `handle-${n}` }));
  const all = kept.map(({ handle }) => handle);
  const record = (n: number, phase: string, reason?: string) => ({
    claimUid: `claim-${n}`,
    volumeName: `pvc-${n}`,
    handle: undefined,
    phase,
    reason,
    problem: undefined,
  });

  /** Numbers of what is destroyed, unproved, stuck and open. */
  const counts = (seen: Parameters<typeof keptFindings>[1]): number[] => {
    const { destroyed, unproved, stuck, pending } = keptFindings(kept, seen);
    return [destroyed, unproved, stuck, pending].map(({ length }) => length);
  };

  test('is 0 where records are closed and the storage is there, whatever else was deleted or is open', () => {
    const deletions = [{ handle: 'of-another', endMs: 1 }];
    const records = [record(9, 'create'), record(8, 'stuck', 'unproved'), record(7, 'stuck', 'undecidable')];
    assert.deepEqual(counts({ records, deletions, stored: [...all, 'of-another'] }), [0, 0, 0, 0]);
  });

  test('has storage as destroyed that is gone, or whose deletion reached the driver', () => {
    const deletions = [1, 2].map((n) => ({ handle: `handle-${n}`, endMs: 1 }));
    assert.deepEqual(counts({ records: [], deletions, stored: ['handle-2', 'handle-3'] }), [3, 0, 0, 0]);
  });

  test('distinguishes records that are stuck from those that are still open', () => {
    const records = [
      record(1, 'stuck', 'unproved'),
      record(2, 'stuck', 'undecidable'),
      record(3, 'unclear'),
      record(4, 'delete'),
    ];
    assert.deepEqual(counts({ records, deletions: [], stored: all }), [0, 1, 1, 2]);
  });
});
