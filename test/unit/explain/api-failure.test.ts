import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failureMeaning } from '../../../src/explain/causes/causes.ts';
import { errorFromResponse } from '../../../src/kube/client/error-from-status.ts';
import { persistentVolumes } from '../../../src/provision/objects.ts';
import { ClassDroppedError } from '../../../src/provision/volume/stored-volume.ts';

describe('a failure of the API server', () => {
  for (const why of [
    'GET 10.0.0.1/api/v1/namespaces/ns/secrets/key: no response within 30000 ms',
    'etcdserver: leader changed',
    'get secrets: the response is not a JSON object',
  ]) {
    test(`has nobody recreate a Secret or class: ${why}`, () => {
      const { cause, cure } = failureMeaning(`error getting secret key in namespace ns: ${why}`);
      assert.equal(cause, 'api-server');
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
      const { cause, cure } = failureMeaning(text);
      assert.equal(cause, 'api-server');
      assert.doesNotMatch(cure, /driver|policy/);
      assert.match(cure, /see whether the API server responds/);
    });
  }

  test('is told apart from a refusal to save the volume', () => {
    const text =
      'Error creating provisioned PV object for claim ns/a: persistentvolumes "a" is forbidden: admission webhook "w" denied';
    const { cause, cure } = failureMeaning(text);
    assert.equal(cause, 'rejected');
    assert.match(cure, /such as a policy or a webhook/);
  });

  for (const [code, message] of [
    [400, 'PersistentVolume in version "v1" cannot be handled as a PersistentVolume'],
    [413, 'Request entity too large: limit is 3145728'],
  ] as const) {
    test(`is told apart from a rejection that only its code shows: ${code}`, () => {
      const status = JSON.stringify({ kind: 'Status', apiVersion: 'v1', code, message });
      const error = errorFromResponse(code, status, { verb: 'create', resource: persistentVolumes });
      const text = `Error creating provisioned PV object for claim ns/a: ${message}`;
      assert.equal(failureMeaning(text, { error }).cause, 'rejected');
      assert.equal(failureMeaning(text, { recorded: 'rejected' }).cause, 'rejected');
    });
  }

  test('is told apart from an API server that drops the attributes class of a volume', () => {
    const spec = { volumeAttributesClassName: 'gold', claimRef: {} };
    const error = new ClassDroppedError({ metadata: { name: 'a' }, spec });
    const { cause } = failureMeaning(`Error creating provisioned PV object for claim ns/a: ${error.message}`, {
      error,
    });
    assert.equal(cause, 'attributes-class');
  });

  test('is read from the text of an event that names no cause: a server that fails is no policy', () => {
    const { cause } = failureMeaning('Error creating provisioned PV object for claim ns/a: etcdserver: leader changed');
    assert.equal(cause, 'api-server');
  });

  test('is not what a driver says of its own quota', () => {
    for (const text of [
      'exceeded quota: q',
      'x is forbidden: User "u"',
      'Unauthorized',
      'parameter size is invalid: 1Q',
      'the array denied the request',
    ])
      assert.match(
        failureMeaning(`rpc error: code = Internal desc = ${text}`).cause,
        /^(driver-error|no-capacity|unsupported-size)$/,
      );
  });

  test('is told apart from a missing Secret', () => {
    const { cure } = failureMeaning('error getting secret key in namespace ns: secrets "key" not found');
    assert.match(cure, /^Create the Secret/);
  });
});
