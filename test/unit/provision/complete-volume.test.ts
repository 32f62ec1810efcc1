import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimReference } from '../../../src/provision/claim-facts.ts';
import { completeVolume } from '../../../src/provision/complete-volume.ts';
import { F, makeClaim, makeVolume } from './claims-and-volumes.ts';

const claim = claimReference(makeClaim());
const options = { claim, className: 'c1', provisionedBy: 'drv', addFinalizer: true };

describe('completeVolume', () => {
  test('case 69: the finalizer comes last', () => {
    const volume = completeVolume(makeVolume({ finalizers: ['x/y'] }), options);
    assert.deepEqual(volume.metadata.finalizers, ['x/y', F]);
  });

  test('case 69: without the option it does not come', () => {
    const volume = completeVolume(makeVolume(), { ...options, addFinalizer: false });
    assert.equal(volume.metadata.finalizers, undefined);
  });

  test('case 70: a finalizer that is there stays where it is', () => {
    const volume = completeVolume(makeVolume({ finalizers: [F, 'x/y'] }), options);
    assert.deepEqual(volume.metadata.finalizers, [F, 'x/y']);
  });

  test('case 71: class, claim and author are overwritten, everything else stays', () => {
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'wrong', mine: 'kept' };
    const made = makeVolume(
      { name: 'other-name', annotations, labels: { a: 'b' } },
      { storageClassName: 'wrong', claimRef: { name: 'wrong' }, mountOptions: ['ro'] },
    );
    const before = structuredClone(made);
    const { metadata, spec } = completeVolume(made, { ...options, provisionedBy: 'in-tree' });
    assert.deepEqual(metadata, {
      ...before.metadata,
      annotations: { 'pv.kubernetes.io/provisioned-by': 'in-tree', mine: 'kept' },
      finalizers: [F],
    });
    assert.deepEqual(spec, { ...before.spec, storageClassName: 'c1', claimRef: claim });
    assert.deepEqual(made, before, 'the returned object is the provisioner’s');
  });

  test('a volume without any metadata but a name becomes one the API takes', () => {
    const { spec } = makeVolume();
    const volume = completeVolume({ metadata: { name: 'v' }, spec }, options);
    assert.equal(volume.apiVersion, 'v1');
    assert.equal(volume.kind, 'PersistentVolume');
    assert.deepEqual(volume.metadata, {
      name: 'v',
      annotations: { 'pv.kubernetes.io/provisioned-by': 'drv' },
      finalizers: [F],
    });
  });
});
