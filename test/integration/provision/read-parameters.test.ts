import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { classOfVolume } from '../../../src/provision/read-parameters.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';

const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };

describe('classOfVolume', () => {
  let api: SandboxApi;
  before(async () => {
    api = await SandboxApi.start();
    for (const name of ['old', 'new'])
      api.own.create(classes, { metadata: { name }, provisioner: `${name}.example.com` });
  });
  after(() => api[Symbol.asyncDispose]());

  const beta = { 'volume.beta.kubernetes.io/storage-class': 'old' };

  test('the annotation counts before the field', async () => {
    const both = { metadata: { name: 'v', annotations: beta }, spec: { storageClassName: 'new' } };
    assert.equal((await classOfVolume(api.client, both)).provisioner, 'old.example.com');
    const field = { metadata: { name: 'v' }, spec: { storageClassName: 'new' } };
    assert.equal((await classOfVolume(api.client, field)).provisioner, 'new.example.com');
  });

  test('it is read live: parameters of a class that was recreated count', async () => {
    const field = { metadata: { name: 'v' }, spec: { storageClassName: 'new' } };
    api.own.delete(classes, { name: 'new' });
    await assert.rejects(
      classOfVolume(api.client, field),
      /^Error: StorageClass "new" does not exist any more.*recreate it \(storageclasses.storage.k8s.io "new" not found\)$/,
    );
    api.own.create(classes, { metadata: { name: 'new' }, provisioner: 'new.example.com', parameters: { a: 'b' } });
    assert.deepEqual((await classOfVolume(api.client, field)).parameters, { a: 'b' });
  });

  test('a volume without class has none', async () => {
    await assert.rejects(classOfVolume(api.client, { metadata: { name: 'v' }, spec: {} }), {
      message: 'volume has no storage class',
    });
  });
});
