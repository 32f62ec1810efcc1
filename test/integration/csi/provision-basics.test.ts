/** Selection, capabilities, naming. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CsiProvisionerOptions } from '../../../src/csi/csi-provisioner-options.ts';
import {
  assertFailed,
  assertNoCreate,
  driverName,
  gi5,
  identity,
  makeClaim,
  makeClass,
  Rig,
  uid,
  volumeOf,
} from '../../support/csi-rig.ts';

const gaKey = 'volume.kubernetes.io/storage-provisioner';
const betaKey = 'volume.beta.kubernetes.io/storage-provisioner';
const migratedKey = 'pv.kubernetes.io/migrated-to';

describe('CsiProvisioner, the plain way', () => {
  for (const key of [gaKey, betaKey]) {
    test(`a plain claim chosen by ${key} gives a plain request and volume`, async () => {
      await using rig = await Rig.start();
      const claim = makeClaim({}, { annotations: { [key]: driverName } });
      const outcome = await rig.provision(claim);
      assert.deepEqual(rig.createRequest, {
        name: `pvc-${uid}`,
        capacity_range: { required_bytes: gi5 },
        volume_capabilities: [{ access_mode: { mode: 'SINGLE_NODE_WRITER' }, access_type: 'mount', mount: {} }],
      });
      assert.deepEqual(volumeOf(outcome), {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: {
          name: `pvc-${uid}`,
          annotations: {
            'volume.kubernetes.io/provisioner-deletion-secret-name': '',
            'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
          },
        },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '5Gi' },
          csi: {
            driver: driverName,
            volumeHandle: 'vol-1',
            volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': identity },
          },
          persistentVolumeReclaimPolicy: 'Delete',
          volumeMode: 'Filesystem',
        },
      });
      assert.deepEqual(rig.events, []);
      assert.deepEqual(rig.api.requests, [], 'a plain volume costs no request to the API');
    });
  }

  test('every claim of block mode is taken on', async () => {
    await using rig = await Rig.start();
    assert.equal(rig.provisioner.supportsBlock(), true);
  });

  const choices = [
    { name: 'named by the current annotation', annotations: { [gaKey]: driverName }, ours: true },
    { name: 'named by the beta annotation', annotations: { [betaKey]: driverName }, ours: true },
    { name: 'migrated to us', annotations: { [gaKey]: 'kubernetes.io/x', [migratedKey]: driverName }, ours: true },
    {
      name: 'current annotation names another',
      annotations: { [gaKey]: 'o', [betaKey]: driverName },
      ours: false,
    },
    { name: 'current annotation empty', annotations: { [gaKey]: '', [betaKey]: driverName }, ours: false },
    { name: 'migrated to another', annotations: { [gaKey]: 'kubernetes.io/x', [migratedKey]: 'o' }, ours: false },
    { name: 'no annotation', annotations: {}, ours: false },
  ];
  for (const { name, annotations, ours } of choices) {
    test(`shouldProvision: ${name}: ${ours ? 'yes' : 'no'}`, async () => {
      await using rig = await Rig.start();
      const claim = makeClaim({}, { annotations });
      assert.equal(await rig.provisioner.shouldProvision(claim), ours);
      const outcome = await rig.provision(claim);
      if (ours) volumeOf(outcome);
      else {
        assertFailed(
          outcome,
          'IgnoredError',
          `ignored because PVC annotated with external-provisioner name ${annotations[gaKey] ?? ''} does not match ` +
            `provisioner driver name ${driverName}. This could mean the PVC is not migrated`,
        );
        assertNoCreate(rig);
      }
    });
  }
});

describe('CsiProvisioner, what the driver must be able to do', () => {
  const gaps: {
    name: string;
    plugin?: string[];
    controller?: string[];
    spec: Parameters<typeof makeClaim>[0];
    message: string;
  }[] = [
    {
      name: 'CONTROLLER_SERVICE',
      plugin: [],
      spec: {},
      message: 'CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported',
    },
    {
      name: 'CREATE_DELETE_VOLUME',
      controller: ['LIST_VOLUMES'],
      spec: {},
      message:
        'CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported',
    },
    {
      name: 'a selector, even an empty one',
      spec: { selector: {} },
      message: 'claim Selector is not supported',
    },
    {
      name: 'the capability hides the selector',
      spec: {
        selector: {},
        dataSource: { kind: 'VolumeSnapshot', name: 's', apiGroup: 'snapshot.storage.k8s.io' },
      },
      message:
        'CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported',
    },
  ];
  for (const { name, spec, message, ...capabilities } of gaps) {
    test(`${name} ends the attempt`, async () => {
      await using rig = await Rig.start(capabilities);
      const outcome = await rig.provision(makeClaim(spec));
      assertFailed(outcome, 'finished', message);
      assert.equal(outcome.error?.message, message);
      assertNoCreate(rig);
    });
  }
});

describe('CsiProvisioner, names', () => {
  const digits = uid.replaceAll('-', '');
  const named: { name: string; settings: Partial<CsiProvisionerOptions>; want: string }[] = [
    { name: 'prefix vol', settings: { volumeNamePrefix: 'vol' }, want: `vol-${uid}` },
    { name: 'eight digits', settings: { volumeNameUuidLength: 8 }, want: `pvc-${digits.slice(0, 8)}` },
    { name: 'all digits', settings: { volumeNameUuidLength: 32 }, want: `pvc-${digits}` },
    { name: 'no digits', settings: { volumeNameUuidLength: 0 }, want: 'pvc-' },
  ];
  for (const { name, settings, want } of named) {
    test(`${name} gives ${want} to driver and volume`, async () => {
      await using rig = await Rig.start({ settings });
      assert.equal(volumeOf(await rig.provision()).metadata.name, want);
      assert.equal(rig.createRequest['name'], want);
    });
  }

  const refused: { name: string; settings: Partial<CsiProvisionerOptions>; message: string }[] = [
    {
      name: 'an empty prefix',
      settings: { volumeNamePrefix: '' },
      message: 'volume name prefix cannot be of length 0',
    },
    {
      name: 'a length above the UID',
      settings: { volumeNameUuidLength: 33 },
      message: 'volume name UUID length 33 is out of range: a claim UID has 32 characters without dashes',
    },
    {
      name: 'a length below -1',
      settings: { volumeNameUuidLength: -2 },
      message: 'volume name UUID length -2 is out of range',
    },
  ];
  for (const { name, settings, message } of refused) {
    test(`${name} is refused`, async () => {
      await using rig = await Rig.start({ settings });
      assertFailed(await rig.provision(), 'finished', message);
      assertNoCreate(rig);
    });
  }

  test('a claim without UID is refused', async () => {
    await using rig = await Rig.start();
    const outcome = await rig.provision(makeClaim({}, { uid: '' }));
    assertFailed(outcome, 'finished', 'corrupted PVC object, it is missing UID');
  });

  test('a block claim reaches the driver, which may refuse it', async () => {
    await using rig = await Rig.start();
    await rig.provision(makeClaim({ volumeMode: 'Block' }), makeClass());
    assert.deepEqual(rig.createRequest['volume_capabilities'], [
      { access_mode: { mode: 'SINGLE_NODE_WRITER' }, access_type: 'block', block: {} },
    ]);
  });
});
