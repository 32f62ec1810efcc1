import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storiesOf } from '../../../src/testing/stories.ts';

const options = {
  provisionerName: 'p',
  listStorage: () => [],
  storageOf: () => '',
  settleMs: 1,
  moments: [
    { title: 'when the first half exists', during: 'fulfil', isReached: () => true },
    { title: 'when the first half is gone', during: 'delete', isReached: () => true },
  ],
} as const;

const titles = (recorded?: boolean): string[] =>
  storiesOf({ ...options, leaderElection: true, ...(recorded !== undefined && { recorded }) }).map(
    ({ title }) => title,
  );

describe('the stories of a provisioner with an intent journal', () => {
  const all = titles();

  test('delete the claim at each moment at which others keep it', () => {
    const kept = all.filter((title) => title.endsWith(', the claim gets one volume'));
    assert.equal(kept.length, 9);
    for (const title of kept) {
      const deleted = title.replace(
        'the claim gets one volume',
        'nothing is left of a claim that is deleted meanwhile',
      );
      assert.ok(all.includes(deleted), deleted);
    }
  });

  test('revoke storage at each moment of a deletion that is not a request', () => {
    for (const moment of ['as soon as the storage is gone', 'when the first half is gone']) {
      for (const outcome of ['the deletion is finished', 'nothing is left of a deleted claim']) {
        assert.ok(all.includes(`killed ${moment}, ${outcome}`), `killed ${moment}, ${outcome}`);
      }
    }
  });
});

describe('the stories of a provisioner without an intent journal', () => {
  test('are those of one with a journal that no record is needed for', () => {
    const all = titles();
    const without = titles(false);
    assert.deepEqual(
      without.filter((title) => !all.includes(title)),
      [],
    );
    assert.deepEqual(without, [
      'a claim becomes a volume, and both go',
      'killed when it has fulfilled, before the volume is saved, the claim gets one volume',
      'killed when the volume is saved, before it gets the response, the claim gets one volume',
      'killed when the storage is deleted, before the volume is, the deletion is finished',
      'killed when the volume is deleted, before it gets the response, the deletion is finished',
      'killed as soon as there is storage, the claim gets one volume',
      'killed as soon as the storage is gone, the deletion is finished',
      'killed when the first half exists, the claim gets one volume',
      'killed when the first half is gone, the deletion is finished',
      'killed when the volume is saved, before it gets the response, a volume to be retained keeps its storage',
      'frozen when it has fulfilled, before the volume is saved, until its lease has expired, the claim gets one volume',
      'frozen when the volume is saved, before it gets the response, until its lease has expired, the claim gets one volume',
      'frozen when the storage is deleted, before the volume is, until its lease has expired, the deletion is finished',
    ]);
  });
});
