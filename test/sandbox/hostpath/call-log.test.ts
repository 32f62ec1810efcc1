import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSecretValues } from '../../../sandbox/hostpath/serve-call.ts';

test('of secrets only the keys are shown, sorted', () => {
  const request = { name: 'v', secrets: { user: 'joe', password: 'hunter2' } };
  assert.deepEqual(withoutSecretValues(request), { name: 'v', secrets: ['password', 'user'] });
  assert.equal(request.secrets.password, 'hunter2');
});

test('a request without secrets stays as it is', () => {
  assert.deepEqual(withoutSecretValues({ volume_id: 'x' }), { volume_id: 'x' });
});
