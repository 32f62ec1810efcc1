import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ownsVolume } from '../../../../src/provision/volume/owns-volume.ts';
import { isKnownProvisioner, makeVolume } from '../claims-and-volumes.ts';

const by = 'pv.kubernetes.io/provisioned-by';
const to = 'pv.kubernetes.io/migrated-to';

describe('ownsVolume', () => {
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
      assert.equal(ownsVolume(volume, isKnownProvisioner), want);
    });
  }

  test('a volume without annotations belongs to its driver', () => {
    const { annotations: _none, ...metadata } = makeVolume().metadata;
    assert.equal(ownsVolume({ ...makeVolume(), metadata }, isKnownProvisioner), true);
  });
});
