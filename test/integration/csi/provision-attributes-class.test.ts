/** Volume attributes classes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertFailed,
  assertNoCreate,
  driverName,
  makeClaim,
  makeClass,
  Rig,
  volumeOf,
} from '../../support/csi-rig.ts';

const path = '/apis/storage.k8s.io/v1/volumeattributesclasses/v';
const controller = ['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'];
const claim = makeClaim({ volumeAttributesClassName: 'v' });

function putClass(rig: Rig, name = driverName): void {
  rig.api.put(path, { metadata: { name: 'v' }, driverName: name, parameters: { iops: '9' } });
}

describe('CsiProvisioner, volume attributes classes', () => {
  test('the parameters of the attributes class are sent beside those of the storage class', async () => {
    await using rig = await Rig.start({ controller });
    putClass(rig);
    const volume = volumeOf(await rig.provision(claim, makeClass({ iops: '1' })));
    assert.deepEqual(rig.createRequest['parameters'], { iops: '1' });
    assert.deepEqual(rig.createRequest['mutable_parameters'], { iops: '9' });
    assert.equal(volume.spec.volumeAttributesClassName, 'v');
  });

  test('the driver must be able to modify volumes', async () => {
    await using rig = await Rig.start();
    putClass(rig);
    const message =
      'CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported';
    assertFailed(await rig.provision(claim), 'finished', message);
    assertNoCreate(rig);
  });

  test('a missing class is an error in the words of the API', async () => {
    await using rig = await Rig.start({ controller });
    const outcome = await rig.provision(claim);
    assertFailed(outcome, 'no-change', 'not found');
    assert.equal(outcome.error?.message, 'volumeattributesclasses.storage.k8s.io "v" not found');
    assertNoCreate(rig);
  });

  test('a class of another driver is refused', async () => {
    await using rig = await Rig.start({ controller });
    putClass(rig, 'other');
    const message = `VAC v referenced in PVC is for driver other which does not match driver name ${driverName}`;
    assertFailed(await rig.provision(claim), 'finished', message);
    assertNoCreate(rig);
  });

  const ignored = [
    { name: 'the gate is off', gate: false, className: 'v' },
    { name: 'the name is empty', gate: true, className: '' },
  ];
  for (const { name, gate, className } of ignored) {
    test(`no attributes class is sent when ${name}`, async () => {
      const gates = { crossNamespaceVolumeDataSource: false, volumeAttributesClass: () => gate };
      await using rig = await Rig.start({ settings: { gates } });
      const volume = volumeOf(await rig.provision(makeClaim({ volumeAttributesClassName: className })));
      assert.equal(rig.createRequest['mutable_parameters'], undefined);
      assert.ok(!('volumeAttributesClassName' in volume.spec));
      assert.deepEqual(rig.api.requests, []);
    });
  }

  test('the gate counts at every attempt', async () => {
    let gate = false;
    const gates = { crossNamespaceVolumeDataSource: false, volumeAttributesClass: () => gate };
    await using rig = await Rig.start({ controller, settings: { gates } });
    putClass(rig);
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, undefined);
    gate = true;
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, 'v');
  });
});
