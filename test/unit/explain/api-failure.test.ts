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

  for (const text of [
    'PUT 10.0.0.1/api/v1/persistentvolumes/a: no response within 30000 ms',
    'get persistentvolumes: the response is empty',
    'Error creating provisioned PV object for claim ns/a: POST 10.0.0.1/api/v1/persistentvolumes: no response within 30000 ms',
    'Error creating provisioned PV object for claim ns/a: create persistentvolumes: the response is not a JSON object',
  ]) {
    test(`has nobody look into the log of the driver or at policies: ${text}`, () => {
      const { cure } = failureMeaning(text);
      assert.doesNotMatch(cure, /driver|policy/);
      assert.match(cure, /see whether the API server responds/);
    });
  }

  test('is told apart from a refusal to save the volume', () => {
    const text =
      'Error creating provisioned PV object for claim ns/a: persistentvolumes "a" is forbidden: admission webhook "w" denied';
    assert.match(failureMeaning(text).cure, /such as a policy, a webhook/);
  });

  test('is told apart from a missing Secret', () => {
    const { cure } = failureMeaning('error getting secret key in namespace ns: secrets "key" not found');
    assert.match(cure, /^Create the Secret/);
  });
});
