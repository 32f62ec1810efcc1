import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storageHash } from '../../../../src/provision/volume/storage-hash.ts';

describe('the hash of a storage key', () => {
  test('is a signed integer of 32 bits', () => {
    for (const key of ['', 'h', 'vol-0123456789abcdef', 'h/é/日本', 'x'.repeat(10_000)]) {
      assert.equal(storageHash(key), storageHash(key) | 0, key);
    }
  });

  test('is the same for the same key, and seldom for two', () => {
    const keys = Array.from({ length: 20_000 }, (_, number) => `vol-${number.toString(16).padStart(17, '0')}`);
    assert.equal(storageHash(keys[7]!), storageHash(`vol-${'7'.padStart(17, '0')}`));
    assert.ok(new Set(keys.map(storageHash)).size > 19_990);
  });
});
