import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { IgnoredError } from '../../../src/provision/provisioner.ts';
import { requireIdentity } from '../../../src/provision/require-identity.ts';
import { makeVolume } from './claims-and-volumes.ts';

const key = 'example.com/made-by';

describe('requireIdentity', () => {
  test('passes over volumes of this instance', () => {
    requireIdentity(makeVolume({ annotations: { [key]: 'node-1' } }), key, 'node-1');
  });

  test('leaves those of another instance to it', () => {
    assert.throws(() => requireIdentity(makeVolume({ annotations: { [key]: 'node-2' } }), key, 'node-1'), {
      name: IgnoredError.name,
      reason: 'identity annotation on PV does not match ours',
    });
  });

  test('fails where it is not known whose the volume is', () => {
    assert.throws(() => requireIdentity(makeVolume(), key, 'node-1'), {
      name: 'Error',
      message: 'identity annotation not found on PV',
    });
  });
});
