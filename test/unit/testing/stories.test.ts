import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storiesOf } from '../../../src/testing/stories.ts';

const options = { provisionerName: 'p', listStorage: () => [], storageOf: () => '', settleMs: 1 };

const titles = (recorded?: boolean): string[] =>
  storiesOf({ ...options, ...(recorded !== undefined && { recorded }) }).map(({ title }) => title);

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
      'killed when the volume is saved, before it gets the response, a volume to be retained keeps its storage',
    ]);
  });
});
