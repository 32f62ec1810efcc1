/** Parameters, filesystem type, mount options, extra metadata. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StorageClass } from '../../../src/provision/objects.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import {
  assertFailed,
  assertNoCreate,
  base64,
  makeClaim,
  makeClass,
  Rig,
  uid,
  volumeOf,
} from '../../support/csi-rig.ts';

const prefix = 'csi.storage.k8s.io/';

interface Case {
  name: string;
  parameters: Record<string, string>;
  defaultFsType?: string;
  volumeMode?: string;
  /** Parameters the driver sees; absent: none. */
  sent?: Record<string, string>;
  /** Filesystem type on capability and volume; empty: none. */
  fsType: string;
}

const cases: Case[] = [
  {
    name: 'keys without the prefix pass, also with the prefix in the value',
    parameters: { foo: 'bar', x: `${prefix}fstype` },
    sent: { foo: 'bar', x: `${prefix}fstype` },
    fsType: '',
  },
  { name: 'the prefixed fstype is the filesystem type', parameters: { [`${prefix}fstype`]: 'xfs' }, fsType: 'xfs' },
  {
    name: 'a plain fstype is the filesystem type',
    parameters: { fstype: 'xfs' },
    sent: { fstype: 'xfs' },
    fsType: 'xfs',
  },
  {
    name: 'an fstype in other letters is the filesystem type',
    parameters: { FsType: 'xfs' },
    sent: { FsType: 'xfs' },
    fsType: 'xfs',
  },
  { name: 'without fstype the default is taken', parameters: {}, defaultFsType: 'ext4', fsType: 'ext4' },
  {
    name: 'an empty fstype gives way to the default',
    parameters: { [`${prefix}fstype`]: '' },
    defaultFsType: 'ext4',
    fsType: 'ext4',
  },
  {
    name: 'fstype wins over the default',
    parameters: { fstype: 'xfs' },
    defaultFsType: 'ext4',
    sent: { fstype: 'xfs' },
    fsType: 'xfs',
  },
  { name: 'without fstype and default there is no filesystem type', parameters: {}, fsType: '' },
];

describe('CsiProvisioner, parameters', () => {
  for (const { name, parameters, defaultFsType = '', sent, fsType } of cases) {
    test(name, async () => {
      await using rig = await Rig.start({ settings: { defaultFsType } });
      const volume = volumeOf(await rig.provision(makeClaim(), makeClass(parameters)));
      assert.deepEqual(rig.createRequest['parameters'], sent);
      assert.deepEqual(rig.createRequest['volume_capabilities'], [
        {
          access_mode: { mode: 'SINGLE_NODE_WRITER' },
          access_type: 'mount',
          mount: fsType === '' ? {} : { fs_type: fsType },
        },
      ]);
      assert.equal(volume.spec.csi?.fsType ?? '', fsType);
      assert.equal('fsType' in (volume.spec.csi ?? {}), fsType !== '');
    });
  }

  for (const second of [{ [`${prefix}fstype`]: 'ext4' }, { fsType: 'ext3' }]) {
    test(`fstype and ${Object.keys(second)[0] ?? ''} together are refused`, async () => {
      await using rig = await Rig.start();
      const outcome = await rig.provision(makeClaim(), makeClass({ fstype: 'ext3', ...second }));
      const message = 'fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys';
      assertFailed(outcome, 'finished', message);
      assertNoCreate(rig);
    });
  }

  test('a block claim has no filesystem type anywhere', async () => {
    await using rig = await Rig.start({ settings: { defaultFsType: 'ext4' } });
    const volume = volumeOf(await rig.provision(makeClaim({ volumeMode: 'Block' }), makeClass({ fstype: 'xfs' })));
    assert.deepEqual(rig.createRequest['parameters'], { fstype: 'xfs' });
    assert.deepEqual(rig.createRequest['volume_capabilities'], [
      { access_mode: { mode: 'SINGLE_NODE_WRITER' }, access_type: 'block', block: {} },
    ]);
    assert.equal(volume.spec.csi?.fsType, undefined);
    assert.equal(volume.spec.volumeMode, 'Block');
  });

  for (const key of ['bim', 'pvc/name', 'snapshotter-secret-name']) {
    test(`the reserved key ${key} is refused`, async () => {
      await using rig = await Rig.start();
      const outcome = await rig.provision(makeClaim(), makeClass({ [prefix + key]: 'x' }));
      assertFailed(
        outcome,
        'finished',
        `failed to strip CSI Parameters of prefixed keys: found unknown parameter key "${prefix}${key}" with reserved namespace csi.storage.k8s.io/`,
      );
      assertNoCreate(rig);
    });
  }

  test('an unknown reserved key is found only after the secret was read', async () => {
    await using rig = await Rig.start();
    const parameters = { [`${prefix}secret-name`]: 's', [`${prefix}secret-namespace`]: 'ns', [`${prefix}bim`]: 'x' };
    assertFailed(await rig.provision(makeClaim(), makeClass(parameters)), 'no-change', 'error getting secret s');
  });

  test('all seventeen reserved keys stay here', async () => {
    await using rig = await Rig.start();
    rig.api.put('/api/v1/namespaces/ns/secrets/s', { metadata: { name: 's', namespace: 'ns' }, data: {} });
    const pairs = ['', 'provisioner-', 'controller-publish-', 'node-stage-', 'node-publish-', 'controller-expand-'];
    const parameters: Record<string, string> = { [`${prefix}fstype`]: 'xfs' };
    for (const pair of [...pairs, 'node-expand-', 'controller-modify-']) {
      parameters[`${prefix}${pair}secret-name`] = 's';
      parameters[`${prefix}${pair}secret-namespace`] = 'ns';
    }
    assert.equal(Object.keys(parameters).length, 17);
    volumeOf(await rig.provision(makeClaim(), makeClass(parameters)));
    assert.equal(rig.createRequest['parameters'], undefined);
  });

  test('all deprecated keys work, are warned about and are passed on', async () => {
    const lines: LogLine[] = [];
    await using rig = await Rig.start({ logger: recordedLogger(lines) });
    rig.api.put('/api/v1/namespaces/ns/secrets/s', {
      metadata: { name: 's', namespace: 'ns' },
      data: { a: base64('b') },
    });
    const parameters: Record<string, string> = { fstype: 'xfs' };
    for (const kind of ['Provisioner', 'ControllerPublish', 'NodeStage', 'NodePublish']) {
      parameters[`csi${kind}SecretName`] = 's';
      parameters[`csi${kind}SecretNamespace`] = 'ns';
    }
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass(parameters)));
    const reference = { name: 's', namespace: 'ns' };
    assert.deepEqual(rig.createRequest['parameters'], parameters);
    assert.deepEqual(rig.createRequest['secrets'], { a: 'b' });
    const { controllerPublishSecretRef, nodeStageSecretRef, nodePublishSecretRef } = volume.spec.csi ?? {};
    assert.deepEqual(
      [controllerPublishSecretRef, nodeStageSecretRef, nodePublishSecretRef],
      [reference, reference, reference],
    );
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    assert.equal(warnings.length, 9);
    assert.ok(
      warnings.includes(
        '"csiNodeStageSecretName" is deprecated and will be removed in a future release, please use "csi.storage.k8s.io/node-stage-secret-name" instead',
      ),
    );
  });

  const mountOptions: Partial<StorageClass> = { mountOptions: ['a=b', 'c'] };

  test('mount options keep their order', async () => {
    await using rig = await Rig.start();
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass({}, mountOptions)));
    assert.deepEqual(rig.createRequest['volume_capabilities'], [
      {
        access_mode: { mode: 'SINGLE_NODE_WRITER' },
        access_type: 'mount',
        mount: { mount_flags: ['a=b', 'c'] },
      },
    ]);
    assert.deepEqual(volume.spec.mountOptions, ['a=b', 'c']);
  });

  test('mount options of a block claim reach the volume only', async () => {
    await using rig = await Rig.start();
    const volume = volumeOf(await rig.provision(makeClaim({ volumeMode: 'Block' }), makeClass({}, mountOptions)));
    assert.deepEqual(rig.createRequest['volume_capabilities'], [
      { access_mode: { mode: 'SINGLE_NODE_WRITER' }, access_type: 'block', block: {} },
    ]);
    assert.deepEqual(volume.spec.mountOptions, ['a=b', 'c']);
  });

  test('extra metadata reaches the driver and not the volume', async () => {
    await using rig = await Rig.start({ settings: { extraCreateMetadata: true } });
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass({ foo: 'bar' })));
    assert.deepEqual(rig.createRequest['parameters'], {
      foo: 'bar',
      [`${prefix}pvc/name`]: 'c1',
      [`${prefix}pvc/namespace`]: 'ns1',
      [`${prefix}pv/name`]: `pvc-${uid}`,
    });
    assert.deepEqual(Object.keys(volume.spec.csi?.volumeAttributes ?? {}), [
      'storage.kubernetes.io/csiProvisionerIdentity',
    ]);
  });
});
