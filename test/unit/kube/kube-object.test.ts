import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedValues } from '../../../src/kube/cache/store.ts';
import {
  apiVersion,
  isOlderVersion,
  isReduced,
  type KubeObject,
  markReduced,
  objectKey,
  orderOf,
  type PathParts,
  type Resource,
  resourcePath,
} from '../../../src/kube/kube-object.ts';
import { claimTransform } from '../../../src/provision/cache/cached-claim.ts';
import { volumeTransform } from '../../../src/provision/cache/cached-volume.ts';

for (const { title, namespace, key } of [
  { title: 'an object in a namespace', namespace: 'ns', key: 'ns/a' },
  { title: 'a cluster-scoped object', namespace: undefined, key: 'a' },
  { title: 'a cluster-scoped object whose namespace is empty', namespace: '', key: 'a' },
]) {
  test(`the key of ${title} is ${key}`, () => assert.equal(objectKey({ metadata: { namespace, name: 'a' } }), key));
}

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

describe('isOlderVersion', () => {
  const cases = [
    { version: '99', than: '100', older: true },
    { version: '100', than: '100', older: false },
    { version: '101', than: '100', older: false },
    { version: '9007199254740992', than: '9007199254740993', older: true },
    { version: undefined, than: '100', older: false },
    { version: 'a', than: 'b', older: false },
  ];
  for (const { version, than, older } of cases) {
    test(`${version} is ${older ? '' : 'not '}older than ${than}`, () =>
      assert.equal(isOlderVersion(version, than), older));
  }
});

describe('the order of versions', () => {
  test('is that of numbers', () => assert.equal(orderOf('42'), 42));

  // an empty version and 0 ask for any state, and what is no number, or not exactly one, cannot be compared
  for (const version of [undefined, '', '0', '007', '-1', 'a', '1.5', '9007199254740993']) {
    test(`does not know ${JSON.stringify(version)}`, () => assert.ok(Number.isNaN(orderOf(version))));
  }
});

describe('the mark of reduced objects', () => {
  test('survives copies by spreading, and is not sent', () => {
    const object = markReduced({ metadata: { name: 'a' } });
    assert.equal(isReduced({ ...object, metadata: { name: 'b' } }), true);
    assert.equal(isReduced({ metadata: object.metadata }), false);
    assert.equal(JSON.stringify(object), '{"metadata":{"name":"a"}}');
  });

  const claim = claimTransform(new SharedValues());
  const volume = volumeTransform({ shared: new SharedValues(), isKnownProvisioner: (name) => name === 'ours' });
  const ours = { annotations: { 'pv.kubernetes.io/provisioned-by': 'ours' } };
  const cases: { name: string; cached: (object: KubeObject) => KubeObject; object: object; want: boolean }[] = [
    { name: 'a claim without a volume', cached: claim, object: { spec: {} }, want: false },
    { name: 'a bound claim', cached: claim, object: { spec: { volumeName: 'v' } }, want: true },
    { name: 'a volume of others', cached: volume, object: { spec: {} }, want: true },
    {
      name: 'a bound volume',
      cached: volume,
      object: { metadata: ours, spec: {}, status: { phase: 'Bound' } },
      want: true,
    },
    {
      name: 'a released volume',
      cached: volume,
      object: { metadata: ours, spec: {}, status: { phase: 'Released' } },
      want: false,
    },
  ];
  for (const { name, cached, object, want } of cases) {
    test(`${want ? 'is' : 'is not'} on the cached form of ${name}`, () => {
      const { metadata = {}, ...rest } = object as { metadata?: object };
      assert.equal(isReduced(cached({ metadata: { name: 'x', ...metadata }, ...rest })), want);
    });
  }
});
