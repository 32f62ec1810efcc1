import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSharedStorage } from '../../../src/explain/causes/volume-deletion.ts';

function cureFor(other: string): string | undefined {
  const text = `persistentvolume a has the same storage as persistentvolume ${other}, which is being deleted, too`;
  const found = checkSharedStorage({ text, atMs: 0, count: 1, sinceMs: 0 });
  return found !== undefined && 'cure' in found ? found.cure : undefined;
}

test('a command to copy has a name from an event only if a volume can have it', () => {
  assert.equal(cureFor('pvc-1.a'), 'See why pvc-1.a stays: csi-provisioner why pv/pvc-1.a');
  for (const name of ['$(reboot)', '`reboot`', 'a;reboot', '-h', '\u001b[2J', '<script>', "'a'"]) {
    assert.equal(cureFor(name), undefined, JSON.stringify(name));
  }
});
