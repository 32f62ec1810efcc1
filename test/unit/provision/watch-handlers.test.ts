import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedValues } from '../../../src/kube/cache/store.ts';
import { claimTransform, isPartialClaim } from '../../../src/provision/cache/cached-claim.ts';
import { volumeTransform } from '../../../src/provision/cache/cached-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';
import { claimNeedsSync, isDecisiveChange, volumeNeedsSync } from '../../../src/provision/watch-handlers.ts';
import { F, isKnownProvisioner, makeClaim, makeVolume } from './claims-and-volumes.ts';

const ga = 'volume.kubernetes.io/storage-provisioner';
const beta = 'volume.beta.kubernetes.io/storage-provisioner';
const provisionedBy = 'pv.kubernetes.io/provisioned-by';
const migratedTo = 'pv.kubernetes.io/migrated-to';
const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('claimNeedsSync', () => {
  for (const { name, metadata = {}, spec = {}, want } of [
    { name: 'unbound and ours', want: true },
    { name: 'ours by the beta annotation', metadata: { annotations: { [beta]: 'drv' } }, want: true },
    { name: 'ours by the in-tree name', metadata: { annotations: { [ga]: 'in-tree' } }, want: true },
    { name: 'ours and being deleted', metadata: terminating, want: true },
    { name: 'of a class that may be missing', spec: { storageClassName: 'gone' }, want: true },
    { name: 'bound', spec: { volumeName: 'v' }, want: false },
    { name: 'bound, of a class that may be missing', spec: { volumeName: 'v', storageClassName: 'gone' }, want: false },
    { name: 'without annotation', metadata: { annotations: {} }, want: false },
    { name: 'of another provisioner', metadata: { annotations: { [ga]: 'other', [beta]: 'drv' } }, want: false },
    {
      name: 'of nobody: the GA annotation is empty',
      metadata: { annotations: { [ga]: '', [beta]: 'drv' } },
      want: false,
    },
  ]) {
    test(`a claim, ${name}, is ${want ? '' : 'not '}synced`, () => {
      const cached = claimTransform(new SharedValues())(makeClaim(metadata, spec));
      assert.equal(claimNeedsSync(cached, isKnownProvisioner), want);
    });
  }
});

describe('volumeNeedsSync', () => {
  const other = { csi: { driver: 'new', volumeHandle: 'h' } };
  const plugin = { csi: undefined as never, azureDisk: { diskName: 'd', diskURI: '/d' } };
  const ownsSource = ({ spec }: PersistentVolume): boolean =>
    spec.csi === undefined ? spec.azureDisk !== undefined : spec.csi.driver === 'drv';
  const cases: {
    name: string;
    addFinalizer?: boolean;
    metadata?: Parameters<typeof makeVolume>[0];
    spec?: Parameters<typeof makeVolume>[1];
    want: boolean;
  }[] = [
    { name: 'bound, with our finalizer', metadata: { finalizers: [F] }, want: false },
    { name: 'bound, without our finalizer', want: true },
    { name: 'bound, without our finalizer, being deleted', metadata: terminating, want: false },
    { name: 'bound, where no finalizer is used', addFinalizer: false, want: false },
    {
      name: 'bound, with our finalizer, where none is used',
      addFinalizer: false,
      metadata: { finalizers: [F] },
      want: true,
    },
    {
      name: 'bound, to be kept, with our finalizer',
      metadata: { finalizers: [F] },
      spec: { persistentVolumeReclaimPolicy: 'Retain' },
      want: true,
    },
    { name: 'bound, to be kept', spec: { persistentVolumeReclaimPolicy: 'Retain' }, want: false },
    { name: 'available', spec: { phase: 'Available' }, want: false },
    { name: 'failed', metadata: { finalizers: [F] }, spec: { phase: 'Failed' }, want: false },
    { name: 'released, with our finalizer', metadata: { finalizers: [F] }, spec: { phase: 'Released' }, want: true },
    { name: 'released, without our finalizer', spec: { phase: 'Released' }, want: true },
    {
      name: 'released, being deleted, held by us',
      metadata: { ...terminating, finalizers: [F] },
      spec: { phase: 'Released' },
      want: true,
    },
    {
      name: 'released, being deleted, not held by us',
      metadata: terminating,
      spec: { phase: 'Released' },
      want: false,
    },
    { name: 'released, to be kept', spec: { phase: 'Released', persistentVolumeReclaimPolicy: 'Retain' }, want: false },
    { name: 'of another provisioner', metadata: { annotations: { [provisionedBy]: 'other' } }, want: false },
    {
      name: 'of another provisioner, released',
      metadata: { annotations: { [provisionedBy]: 'other' } },
      spec: { phase: 'Released' },
      want: false,
    },
    {
      name: 'migrated to us, without our finalizer',
      metadata: { annotations: { [provisionedBy]: 'other', [migratedTo]: 'drv' } },
      want: true,
    },
    { name: 'made by hand for our driver, without our finalizer', metadata: { annotations: {} }, want: true },
    { name: 'bound, of another driver, without our finalizer', spec: other, want: false },
    {
      name: 'bound, of another driver, to be kept, with our finalizer',
      metadata: { finalizers: [F] },
      spec: { ...other, persistentVolumeReclaimPolicy: 'Retain' },
      want: false,
    },
    { name: 'available, of another driver', spec: { ...other, phase: 'Available' }, want: false },
    {
      name: 'released, of another driver, which an event is to say',
      spec: { ...other, phase: 'Released' },
      want: true,
    },
    {
      name: 'released, of another driver, to be kept, with our finalizer',
      metadata: { finalizers: [F] },
      spec: { ...other, phase: 'Released', persistentVolumeReclaimPolicy: 'Retain' },
      want: false,
    },
    {
      name: 'released, of another driver, to be kept, being deleted, held by our finalizer',
      metadata: { ...terminating, finalizers: [F] },
      spec: { ...other, phase: 'Released', persistentVolumeReclaimPolicy: 'Retain' },
      want: true,
    },
    {
      name: 'released, of another driver and of another provisioner',
      metadata: { annotations: { [provisionedBy]: 'other' } },
      spec: { ...other, phase: 'Released' },
      want: false,
    },
    { name: 'bound, of the plugin, without our finalizer', spec: plugin, want: true },
    { name: 'bound, of the plugin, with our finalizer', metadata: { finalizers: [F] }, spec: plugin, want: false },
  ];
  for (const { name, addFinalizer = true, metadata = {}, spec = {}, want } of cases) {
    test(`a volume, ${name}, is ${want ? '' : 'not '}synced`, () => {
      const transform = volumeTransform({ shared: new SharedValues(), isKnownProvisioner, ownsSource });
      const cached = transform(makeVolume(metadata, spec));
      assert.equal(volumeNeedsSync(cached, { isKnownProvisioner, ownsSource, addFinalizer }), want);
    });
  }
});

const storageClass: StorageClass = { metadata: { name: 'c1' }, provisioner: 'drv' };
const classes = { get: (name: string) => (name === 'c1' ? storageClass : undefined) } as never;
const provisioner = { claimAnnotations: () => ['team'] };

const transform = claimTransform(new SharedValues());

/** The cached form of a claim with these annotations. */
function cached(annotations: Record<string, string>, spec: object = {}): PersistentVolumeClaim {
  return transform(makeClaim({ annotations }, spec));
}

describe('whether a change of a claim may change the result of an attempt', () => {
  const long = 'x'.repeat(9000);
  const node = 'volume.kubernetes.io/selected-node';

  test('an annotation that nothing reads does not, however long it becomes', () => {
    const forms = [cached({}), cached({ notes: 'x' }), cached({ notes: long }), cached({ notes: `${long}y` })];
    assert.deepEqual(forms.map(isPartialClaim), [false, false, true, true]);
    for (const [index, old] of forms.entries()) {
      for (const claim of forms.slice(index)) {
        assert.equal(isDecisiveChange(old, claim, { provisioner, classes }), false);
        assert.equal(isDecisiveChange(claim, old, { provisioner, classes }), false);
      }
    }
  });

  test('the selected node and a volume do, also of a claim that is kept in part', () => {
    for (const notes of ['x', long]) {
      const old = cached({ notes });
      assert.equal(isDecisiveChange(old, cached({ notes, [node]: 'n1' }), { provisioner, classes }), true);
      assert.equal(isDecisiveChange(old, cached({ notes }, { volumeName: 'v' }), { provisioner, classes }), true);
    }
  });

  test('an annotation that its provisioner reads does, and any where it does not say which', () => {
    assert.equal(isDecisiveChange(cached({}), cached({ team: 'red' }), { provisioner, classes }), true);
    assert.equal(isDecisiveChange(cached({}), cached({ notes: 'x' }), { provisioner: {}, classes }), true);
  });
});
