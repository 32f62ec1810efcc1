import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failureMeaning } from '../../../src/explain/causes/causes.ts';

describe('a failure of the API server', () => {
  for (const why of [
    'GET 10.0.0.1/api/v1/namespaces/ns/secrets/key: no response within 30000 ms',
    'etcdserver: leader changed',
    'get secrets: the response is not a JSON object',
  ]) {
    test(`has nobody recreate a Secret or class: ${why}`, () => {
      const { cure } = failureMeaning(`error getting secret key in namespace ns: ${why}`);
      assert.doesNotMatch(cure, /create|delete/i);
      assert.match(cure, /API server/);
    });
  }

  test('is not looked for in the log of the driver', () => {
    const { cure } = failureMeaning('PUT 10.0.0.1/api/v1/persistentvolumes/a: no response within 30000 ms');
    assert.doesNotMatch(cure, /driver/);
    assert.match(cure, /API server/);
  });

  test('is not what a Secret that is missing is', () => {
    const { cure } = failureMeaning('error getting secret key in namespace ns: secrets "key" not found');
    assert.match(cure, /^Create the Secret/);
  });
});
