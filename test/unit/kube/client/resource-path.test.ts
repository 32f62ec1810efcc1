import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { apiVersion, type Resource } from '../../../../src/kube/kube-object.ts';
import { type PathParts, resourcePath } from '../../../../src/kube/client/resource-path.ts';

const claims: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
};
const classes: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
};

describe('resourcePath', () => {
  const cases: { name: string; resource: Resource; parts: PathParts; want: string }[] = [
    { name: 'all namespaces', resource: claims, parts: {}, want: '/api/v1/persistentvolumeclaims' },
    {
      name: 'one namespace',
      resource: claims,
      parts: { namespace: 'ns' },
      want: '/api/v1/namespaces/ns/persistentvolumeclaims',
    },
    {
      name: 'a part of an object',
      resource: claims,
      parts: { namespace: 'ns', name: 'c', subresource: 'status', required: true },
      want: '/api/v1/namespaces/ns/persistentvolumeclaims/c/status',
    },
    {
      name: 'a cluster-scoped object of a named group, whatever the namespace',
      resource: classes,
      parts: { namespace: 'ns', name: 'fast.io', required: true },
      want: '/apis/storage.k8s.io/v1/storageclasses/fast.io',
    },
    {
      name: 'a name that needs escaping',
      resource: classes,
      parts: { name: 'a b?c' },
      want: '/apis/storage.k8s.io/v1/storageclasses/a%20b%3Fc',
    },
  ];
  for (const { name, resource, parts, want } of cases) {
    test(`names ${name}`, () => {
      assert.equal(resourcePath(resource, parts), want);
    });
  }

  test('refuses parts that would lead elsewhere', () => {
    for (const name of ['', '.', '..', 'a/b', 'a%2fb'])
      assert.throws(() => resourcePath(classes, { name }), TypeError, name);
    assert.throws(() => resourcePath(claims, { namespace: '..', name: 'a' }), TypeError);
  });

  test('refuses an empty namespace where one is needed', () => {
    assert.throws(() => resourcePath(claims, { namespace: '', name: 'a', required: true }), TypeError);
    assert.throws(() => resourcePath(claims, { required: true }), TypeError);
  });
});

test('apiVersion leaves out the core group', () => {
  assert.deepEqual([apiVersion(claims), apiVersion(classes)], ['v1', 'storage.k8s.io/v1']);
});
