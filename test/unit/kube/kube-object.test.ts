import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectKey } from '../../../src/kube/kube-object.ts';

for (const { title, namespace, key } of [
  { title: 'an object in a namespace', namespace: 'ns', key: 'ns/a' },
  { title: 'a cluster-scoped object', namespace: undefined, key: 'a' },
  { title: 'a cluster-scoped object whose namespace is empty', namespace: '', key: 'a' },
]) {
  test(`the key of ${title} is ${key}`, () => assert.equal(objectKey({ metadata: { namespace, name: 'a' } }), key));
}
