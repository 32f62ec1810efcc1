import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import {
  contradictionOf,
  contradictionText,
  finalizerUpkeep,
  namesProvisioner,
  ownerOf,
  removeFinalizer,
  shouldDelete,
  type VolumeOwner,
} from '../../../src/provision/volume-fields.ts';
import { F, isKnownProvisioner, makeVolume } from './claims-and-volumes.ts';

const by = 'pv.kubernetes.io/provisioned-by';
const to = 'pv.kubernetes.io/migrated-to';

describe('which provisioner a volume names', () => {
  for (const { name, annotations, driver, want } of [
    { name: 'made by us', annotations: { [by]: 'drv' }, driver: 'drv', want: true },
    { name: 'made under an additional name', annotations: { [by]: 'in-tree' }, driver: undefined, want: true },
    { name: 'static, of our driver', annotations: {}, driver: 'drv', want: true },
    { name: 'static, of another driver', annotations: {}, driver: 'other', want: false },
    { name: 'of no driver', annotations: {}, driver: undefined, want: false },
    { name: 'migrated to us', annotations: { [to]: 'drv' }, driver: undefined, want: true },
    {
      name: 'made by a plugin, migrated to us',
      annotations: { [by]: 'gone', [to]: 'drv' },
      driver: undefined,
      want: true,
    },
    { name: 'made by others with our driver', annotations: { [by]: 'other' }, driver: 'drv', want: false },
    { name: 'made by others', annotations: { [by]: 'other' }, driver: 'other', want: false },
    { name: 'made by nobody, said aloud', annotations: { [by]: '' }, driver: 'drv', want: false },
    {
      name: 'static, of another driver, migrated to us: the driver decides',
      annotations: { [to]: 'drv' },
      driver: 'other',
      want: false,
    },
    { name: 'migrated to others', annotations: { [to]: 'other' }, driver: undefined, want: false },
  ]) {
    test(name, () => {
      const { csi: _csi, ...spec } = makeVolume().spec;
      const volume = {
        ...makeVolume({ annotations }),
        spec: driver === undefined ? spec : { ...spec, csi: { driver, volumeHandle: 'h' } },
      };
      assert.equal(namesProvisioner(volume, isKnownProvisioner), want);
    });
  }

  test('a volume without annotations belongs to its driver', () => {
    const { annotations: _none, ...metadata } = makeVolume().metadata;
    assert.equal(namesProvisioner({ ...makeVolume(), metadata }, isKnownProvisioner), true);
  });
});

/** A volume with these annotations and this source, in place of that of `drv`. */
function volumeWith(annotations: Record<string, string>, source: object, more: object = {}): PersistentVolume {
  const { csi: _csi, ...spec } = makeVolume().spec;
  return { ...makeVolume({ annotations, ...more }), spec: { ...spec, ...source }, status: { phase: 'Released' } };
}

/** As a driver that replaced the plugin of Azure's disks. */
const ownership = {
  isKnownProvisioner,
  ownsSource: ({ spec }: PersistentVolume) =>
    spec.csi === undefined ? spec.azureDisk !== undefined : spec.csi.driver === 'drv',
};

const csi = (driver: string): object => ({ csi: { driver, volumeHandle: 'h' } });
const disk = { azureDisk: { diskName: 'd', diskURI: '/d' } };

describe('whose a volume is', () => {
  const rows: { name: string; annotations: Record<string, string>; source: object; want: VolumeOwner }[] = [
    { name: 'made by us, of our driver', annotations: { [by]: 'drv' }, source: csi('drv'), want: 'ours' },
    { name: 'made by us, of another driver', annotations: { [by]: 'drv' }, source: csi('new'), want: 'contradictory' },
    { name: 'made by others, of our driver', annotations: { [by]: 'new' }, source: csi('drv'), want: 'others' },
    { name: 'made by others, of their driver', annotations: { [by]: 'new' }, source: csi('new'), want: 'others' },
    { name: 'static, of our driver', annotations: {}, source: csi('drv'), want: 'ours' },
    { name: 'static, of another driver', annotations: {}, source: csi('new'), want: 'others' },
    {
      name: 'static, with the name of the plugin as its driver',
      annotations: {},
      source: csi('in-tree'),
      want: 'others',
    },
    { name: 'made by the plugin', annotations: { [by]: 'in-tree' }, source: disk, want: 'ours' },
    { name: 'made by the plugin, migrated', annotations: { [by]: 'in-tree', [to]: 'drv' }, source: disk, want: 'ours' },
    { name: 'of the plugin, annotated for the driver', annotations: { [by]: 'drv' }, source: disk, want: 'ours' },
    {
      name: 'of the driver, annotated for the plugin',
      annotations: { [by]: 'in-tree' },
      source: csi('drv'),
      want: 'ours',
    },
    { name: 'of the plugin, without annotation', annotations: {}, source: disk, want: 'others' },
    { name: 'of the plugin, migrated to us alone', annotations: { [to]: 'drv' }, source: disk, want: 'ours' },
    {
      name: 'annotated for the plugin, of another driver',
      annotations: { [by]: 'in-tree' },
      source: csi('new'),
      want: 'contradictory',
    },
    {
      name: 'made by others, migrated to us, of their driver',
      annotations: { [by]: 'new', [to]: 'drv' },
      source: csi('new'),
      want: 'contradictory',
    },
    {
      name: 'static, of another driver, migrated to us',
      annotations: { [to]: 'drv' },
      source: csi('new'),
      want: 'others',
    },
    {
      name: 'of another plugin, annotated for ours',
      annotations: { [by]: 'in-tree', [to]: 'drv' },
      source: { gcePersistentDisk: { pdName: 'd' } },
      want: 'contradictory',
    },
    ...['nfs', 'hostPath', 'local', 'iscsi', 'fc', 'flexVolume', 'rbd'].map((kind) => ({
      name: `of ${kind}, annotated for us`,
      annotations: { [by]: 'drv' },
      source: { [kind]: {} },
      want: 'contradictory' as const,
    })),
    { name: 'without any source', annotations: { [by]: 'drv' }, source: {}, want: 'contradictory' },
  ];
  for (const { name, annotations, source, want } of rows) {
    test(`${name}: ${want}`, () => {
      const volume = volumeWith(annotations, source);
      assert.equal(ownerOf(volume, ownership), want);
      const names = want === 'contradictory' || (want === 'ours' && Object.keys(annotations).length > 0);
      assert.equal(contradictionOf(volume, isKnownProvisioner) !== undefined, names);
    });
  }

  test('a provisioner that says nothing of sources owns every volume that names it', () => {
    const volume = volumeWith({ [by]: 'drv' }, csi('new'));
    assert.equal(ownerOf(volume, { isKnownProvisioner, ownsSource: undefined }), 'ours');
    assert.equal(
      ownerOf(volumeWith({ [by]: 'x' }, csi('new')), { isKnownProvisioner, ownsSource: undefined }),
      'others',
    );
  });

  test('the source of a bound one, which the cache does not keep, does not count', () => {
    const volume = volumeWith({ [by]: 'drv' }, {});
    assert.equal(ownerOf({ ...volume, status: { phase: 'Bound' } }, ownership), 'ours');
  });
});

describe('what is wrong with a contradictory volume', () => {
  const textOf = (volume: PersistentVolume): string =>
    contradictionText(volume, contradictionOf(volume, isKnownProvisioner)!);

  test('names the annotation, the driver, and what to do', () => {
    assert.equal(
      textOf(volumeWith({ [by]: 'drv' }, csi('new'))),
      'persistentvolume v is left as it is: its annotation pv.kubernetes.io/provisioned-by names drv, but its storage is of CSI driver new. Correct the annotation, or set the reclaim policy to Retain',
    );
  });

  test('names the annotation that counts, and other kinds of sources', () => {
    const text = textOf(volumeWith({ [by]: 'new', [to]: 'drv' }, { nfs: { server: 's', path: '/p' } }));
    assert.match(text, /its annotation pv\.kubernetes\.io\/migrated-to names drv, but its source is nfs\. /);
    assert.match(textOf(volumeWith({ [by]: 'drv' }, {})), /its source is none\. /);
  });

  test('names the finalizer that holds a volume: the policy would not free it', () => {
    const held = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y', F] };
    assert.match(
      textOf(volumeWith({ [by]: 'drv' }, csi('new'), held)),
      /Correct the annotation, or remove the finalizer external-provisioner\.volume\.kubernetes\.io\/finalizer: then the storage stays$/,
    );
  });
});

const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const released = { phase: 'Released' };

describe('shouldDelete', () => {
  for (const { name, on, metadata = {}, spec = released, want } of [
    { name: 'a released volume is deleted', on: false, want: true },
    { name: 'a bound volume is not deleted', on: false, spec: { phase: 'Bound' }, want: false },
    { name: 'an available volume is not deleted', on: false, spec: { phase: 'Available' }, want: false },
    { name: 'a failed volume is not deleted', on: false, spec: { phase: 'Failed' }, want: false },
    {
      name: 'a released volume with policy Retain is not deleted',
      on: false,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Retain' as const },
      want: false,
    },
    {
      name: 'a released volume with policy Recycle is not deleted',
      on: true,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Recycle' as const },
      want: false,
    },
    {
      name: 'finalizers off: a volume that is being deleted is left alone',
      on: false,
      metadata: terminating,
      want: false,
    },
    {
      name: 'finalizers off: a volume that is being deleted is left alone even with our finalizer',
      on: false,
      metadata: { ...terminating, finalizers: [F] },
      want: false,
    },
    {
      name: 'finalizers on: a released volume with ours is deleted',
      on: true,
      metadata: { finalizers: [F] },
      want: true,
    },
    {
      name: 'finalizers on: a volume with ours that is being deleted is deleted',
      on: true,
      metadata: { ...terminating, finalizers: [F] },
      want: true,
    },
    {
      name: 'finalizers on: a volume without ours that is being deleted is left alone',
      on: true,
      metadata: terminating,
      want: false,
    },
    { name: 'finalizers on: a released volume without ours is deleted', on: true, want: true },
    {
      name: 'a volume that is being deleted but still bound is left alone',
      on: true,
      metadata: { ...terminating, finalizers: [F] },
      spec: { phase: 'Bound' },
      want: false,
    },
  ]) {
    test(name, () => {
      assert.equal(shouldDelete(makeVolume(metadata, spec), on), want);
    });
  }

  test('a volume without a status is not deleted', () => {
    const { status: _status, ...volume } = makeVolume();
    assert.equal(shouldDelete(volume, false), false);
  });
});

const x = 'kubernetes.io/pv-protection';

/** Every combination of option, policy, phase, being deleted, present. */
describe('finalizerUpkeep', () => {
  for (const on of [true, false]) {
    for (const policy of ['Delete', 'Retain', 'Recycle'] as const) {
      for (const phase of ['Pending', 'Available', 'Bound', 'Released', 'Failed']) {
        for (const deleting of [false, true]) {
          for (const present of [false, true]) {
            const wanted = on && policy === 'Delete' && phase === 'Bound' && !deleting && !present;
            const unwanted = present && (!on || policy !== 'Delete');
            const action = wanted ? 'added' : unwanted ? 'removed' : 'left as it is';
            const state = `${policy}, ${phase}${deleting ? ', being deleted' : ''}`;
            test(`option ${on ? 'on' : 'off'}, ${state}, ${present ? 'present' : 'absent'}: ${action}`, () => {
              const metadata = { finalizers: present ? [F] : [], ...(deleting && terminating) };
              const volume = makeVolume(metadata, { phase, persistentVolumeReclaimPolicy: policy });
              const change = finalizerUpkeep(volume, on);
              const want = { added: [F], removed: [], 'left as it is': undefined }[action];
              assert.deepEqual(change?.finalizers, want);
            });
          }
        }
      }
    }
  }

  test('the patch for a volume without finalizers', () => {
    assert.deepEqual(finalizerUpkeep(makeVolume(), true), {
      finalizers: [F],
      patch: { metadata: { finalizers: [F] } },
    });
  });

  test('the patch for a volume with others', () => {
    assert.deepEqual(finalizerUpkeep(makeVolume({ finalizers: [x, 'y/z'] }), true), {
      finalizers: [x, 'y/z', F],
      patch: { metadata: { '$setElementOrder/finalizers': [x, 'y/z', F], finalizers: [F] } },
    });
  });
});

describe('removeFinalizer', () => {
  test('the patch when others stay', () => {
    assert.deepEqual(removeFinalizer([x, F, 'y/z']), {
      finalizers: [x, 'y/z'],
      patch: {
        metadata: { '$deleteFromPrimitiveList/finalizers': [F], '$setElementOrder/finalizers': [x, 'y/z'] },
      },
    });
  });

  test('the patch when none stays', () => {
    assert.deepEqual(removeFinalizer([F]), { finalizers: [], patch: { metadata: { finalizers: null } } });
  });
});
