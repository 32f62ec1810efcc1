import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeSpec } from '../../../src/provision/objects.ts';

test('a source, mode or policy that Kubernetes does not know is found by the type checker', () => {
  const specs: PersistentVolumeSpec[] = [
    { nfs: { server: 'nas.example.com', path: '/a' }, accessModes: ['ReadWriteMany'] },
    { local: { path: '/a' }, persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Block' },
    // @ts-expect-error: the field is hostPath
    { hostpath: { path: '/a' } },
    // @ts-expect-error: the server is missing
    { nfs: { path: '/a' } },
    // @ts-expect-error: the mode is ReadWriteOnce
    { hostPath: { path: '/a' }, accessModes: ['RWO'] },
    // @ts-expect-error: the policy is Delete
    { hostPath: { path: '/a' }, persistentVolumeReclaimPolicy: 'delete' },
    // @ts-expect-error: the mode is Filesystem
    { hostPath: { path: '/a' }, volumeMode: 'FileSystem' },
  ];
  assert.equal(specs.length, 7);
});
